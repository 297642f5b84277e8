/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/transport.h"
#include "transport/shm_queue.h"
#include "ranks.h"
#include "transport.h"

/* Every rank adds its left neighbour's vector to its own, from memory that the neighbour can be
 * read in, and from memory that it cannot. */
static void check_add(struct gf_comm *c, size_t count, bool shared)
{
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks;
	struct gf_element element = gf_element_number(GF_F32, GF_OP_SUM);
	struct gf_comm_request *send, *receive;
	struct gf_error err = {""};
	float *out, *sum = gf_xcalloc(count + 1, sizeof(*sum));
	size_t i, wrong = 0;
	void *memory;

	if (c->ranks == 1) {
		free(sum);
		return;
	}
	EXPECT(c->ops->reduces_from(c, left), "on one host");
	EXPECT(!c->ops->reduces_from(c, c->rank), "not from itself");
	if (shared)
		EXPECT(!c->ops->buffer_alloc(c, (count + 1) * sizeof(float), &memory, &err), "%s",
		       err.text);
	else
		memory = gf_xcalloc(count + 1, sizeof(float));
	out = memory;
	for (i = 0; i < count; i++) {
		out[i] = (float)(c->rank + (int)(i % 100));
		sum[i] = 1000;
	}
	EXPECT(!c->ops->isend(c, right, gf_tag(1, 2), out, count * sizeof(float), &send, &err),
	       "%s", err.text);
	EXPECT(!c->ops->irecv_reduce(c, left, gf_tag(1, 2), sum, count, &element, &receive, &err),
	       "%s", err.text);
	EXPECT(!gf_comm_wait(c, receive, &err), "%s", err.text);
	EXPECT(!gf_comm_wait(c, send, &err), "%s", err.text);
	for (i = 0; i < count; i++)
		wrong += sum[i] != (float)(1000 + left + (int)(i % 100));
	EXPECT(!wrong && sum[count] == 0, "rank %d: %zu of %zu", c->rank, wrong, count);
	if (shared)
		c->ops->buffer_free(c, memory);
	else
		free(memory);
	free(sum);
}

/* More messages than the queue holds, before anybody receives: they wait, and come in order. */
static void check_flood(struct gf_comm *c)
{
	enum { COUNT = 300 };
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks;
	struct gf_comm_request *send[COUNT], *receive;
	struct gf_error err = {""};
	int out[COUNT], got, i;

	for (i = 0; i < COUNT; i++) {
		out[i] = i;
		EXPECT(!c->ops->isend(c, right, gf_tag(3, (uint32_t)i % 2), &out[i], sizeof(int),
				      &send[i], &err),
		       "%s", err.text);
	}
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	for (i = 0; i < COUNT; i++) {
		int want = i < COUNT / 2 ? 2 * i + 1 : 2 * (i - COUNT / 2);

		EXPECT(!c->ops->irecv(c, left, gf_tag(3, (uint32_t)want % 2), &got, sizeof(got),
				      &receive, &err),
		       "%s", err.text);
		EXPECT(!gf_comm_wait(c, receive, &err) && got == want, "want %d, got %d", want,
		       got);
	}
	for (i = 0; i < COUNT; i++)
		EXPECT(!gf_comm_wait(c, send[i], &err), "%s", err.text);
}

/* How the halves of an exchange that brings a sum back are called. */
struct back_case {
	const char *what;
	bool lends, puts_back; /* or the plain calls */
	bool elsewhere;        /* the sum is to land in other memory */
	bool saves;            /* is a copy saved? */
};

static void send_part(struct gf_comm *c, const struct back_case *k, int peer, float *data,
		      size_t count, float *result)
{
	size_t size_bytes = count * sizeof(float);
	struct gf_comm_request *send, *receive;
	struct gf_error err = {""};
	uint64_t moved = c->moved_bytes;

	EXPECT(!(k->lends ? c->ops->isend_lent : c->ops->isend)(c, peer, gf_tag(5, 1), data,
								size_bytes, &send, &err),
	       "%s", err.text);
	EXPECT(!gf_comm_wait(c, send, &err), "%s", err.text);
	EXPECT(!c->ops->irecv(c, peer, gf_tag(5, 2), result, size_bytes, &receive, &err), "%s",
	       err.text);
	EXPECT(!gf_comm_wait(c, receive, &err), "%s", err.text);
	if (size_bytes > (k->saves ? GF_SHM_LENT_BYTES : GF_SHM_EAGER_BYTES))
		EXPECT((c->moved_bytes == moved) == k->saves, "%s: moved %d", k->what,
		       (int)(c->moved_bytes - moved));
}

static void sum_up(struct gf_comm *c, const struct back_case *k, int peer, float *data,
		   size_t count)
{
	struct gf_element element = gf_element_number(GF_F32, GF_OP_SUM);
	struct gf_comm_request *send, *receive;
	struct gf_error err = {""};

	EXPECT(!(k->puts_back ? c->ops->irecv_reduce_back : c->ops->irecv_reduce)(
		       c, peer, gf_tag(5, 1), data, count, &element, &receive, &err),
	       "%s", err.text);
	EXPECT(!gf_comm_wait(c, receive, &err), "%s", err.text);
	EXPECT(!(k->puts_back ? c->ops->isend_back : c->ops->isend)(
		       c, peer, gf_tag(5, 2), data, count * sizeof(float), &send, &err),
	       "%s", err.text);
	EXPECT(!gf_comm_wait(c, send, &err), "%s", err.text);
}

/* Even ranks send a part, odd ones sum up and send back; both have the sum. */
static void check_back(struct gf_comm *c, const struct back_case *k, size_t count)
{
	struct gf_error err = {""};
	size_t wrong = 0, i;
	float *data, *other;
	void *memory;
	int peer = c->rank ^ 1;

	if (peer >= c->ranks)
		return;
	EXPECT(!c->ops->buffer_alloc(c, 2 * count * sizeof(float), &memory, &err), "%s", err.text);
	data = memory;
	other = k->elsewhere ? data + count : data;
	for (i = 0; i < count; i++)
		data[i] = (float)(c->rank % 2 + 1) * (float)(i % 97);
	if (c->rank % 2)
		sum_up(c, k, peer, data, count);
	else
		send_part(c, k, peer, data, count, other);
	for (i = 0; i < count; i++)
		wrong += (c->rank % 2 ? data : other)[i] != 3 * (float)(i % 97);
	EXPECT(!wrong, "%s, rank %d: %zu of %zu", k->what, c->rank, wrong, count);
	c->ops->buffer_free(c, memory);
}

/* A sum is put back, but the message that says so is never sent. The next reduction there is from
 * memory that is not lent, so its data must travel. */
static void check_stale(struct gf_comm *c)
{
	enum { COUNT = 5000 };
	static const struct back_case plain = {.what = "after a stale sum", .puts_back = true};
	struct gf_element element = gf_element_number(GF_F32, GF_OP_SUM);
	struct gf_comm_request *request;
	struct gf_error err = {""};
	int peer = c->rank ^ 1, i;
	float *data;
	void *memory;

	if (peer >= c->ranks)
		return;
	EXPECT(!c->ops->buffer_alloc(c, COUNT * sizeof(float), &memory, &err), "%s", err.text);
	data = memory;
	if (c->rank % 2)
		EXPECT(!c->ops->irecv_reduce_back(c, peer, gf_tag(6, 1), data, COUNT, &element,
						  &request, &err),
		       "%s", err.text);
	else
		EXPECT(!c->ops->isend_lent(c, peer, gf_tag(6, 1), data, COUNT * sizeof(float),
					   &request, &err),
		       "%s", err.text);
	EXPECT(!gf_comm_wait(c, request, &err), "%s", err.text);
	for (i = 0; i < COUNT; i++)
		data[i] = (float)(c->rank % 2 + 1);
	if (c->rank % 2)
		sum_up(c, &plain, peer, data, COUNT);
	else
		send_part(c, &plain, peer, data, COUNT, data);
	for (i = 0; i < COUNT && data[i] == 3; i++)
		;
	EXPECT(i == COUNT, "%s: element %d is %g", plain.what, i, data[i]);
	c->ops->buffer_free(c, memory);
}

static void check_backs(struct gf_comm *c)
{
	static const struct back_case cases[] = {
		{"lent and put back", true, true, false, true},
		{"put back, wanted elsewhere", true, true, true, true},
		{"lent, not put back", true, false, false, false},
		{"not lent", false, true, false, false},
	};
	static const size_t counts[] = {1, 1024, 1025, 2049, 65536, 300001};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (k = 0; k < GF_ARRAY_LENGTH(counts); k++)
			check_back(c, &cases[i], counts[k]);
	check_stale(c);
}

/* Lets every rank announce as much as the queues have room for, again and again. */
static void take_turns(struct gf_comm *c, struct gf_comm_request *last)
{
	struct gf_error err = {""};
	int i;

	for (i = 0; i < 2 * GF_SHM_DONE / GF_SHM_SLOTS; i++)
		EXPECT(!c->ops->test(c, last, &err) && !gf_comm_barrier(c, &err), "%s", err.text);
}

/* More long messages than there are flags that say when one was read: a send ends when it was read,
 * although later ones want the flag. */
static void check_long_flood(struct gf_comm *c)
{
	enum { COUNT = GF_SHM_DONE + 40, FIRST = 40, ELEMS = 1100 };
	const size_t size = ELEMS * sizeof(int);
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks;
	struct gf_comm_request *send[COUNT], *receive;
	struct gf_error err = {""};
	int *got = gf_xcalloc(ELEMS, sizeof(int)), i;
	void *out;

	EXPECT(!c->ops->buffer_alloc(c, size, &out, &err), "%s", err.text);
	for (i = 0; i < COUNT; i++)
		EXPECT(!c->ops->isend(c, right, gf_tag(4, (uint32_t)i), out, size, &send[i], &err),
		       "%s", err.text);
	for (i = 0; i < COUNT; i++) {
		/* by now all of them have been announced that can be */
		if (i == FIRST)
			EXPECT(c->ops->test(c, send[0], &err) == 1, "rank %d: the first was read",
			       c->rank);
		EXPECT(!c->ops->irecv(c, left, gf_tag(4, (uint32_t)i), got, size, &receive, &err) &&
			       !gf_comm_wait(c, receive, &err),
		       "%s", err.text);
		if (i == FIRST - 1)
			take_turns(c, send[COUNT - 1]);
		if (i >= FIRST)
			EXPECT(!gf_comm_wait(c, send[i - FIRST + 1], &err), "%s", err.text);
	}
	for (i = COUNT - FIRST + 1; i < COUNT; i++)
		EXPECT(!gf_comm_wait(c, send[i], &err), "%s", err.text);
	c->ops->buffer_free(c, out);
	free(got);
}

/* A rank that waits in a barrier still announces what it sent before, of which the queue holds a
 * part: the other one comes after it has all of it. */
static void check_sent_before_barrier(struct gf_comm *c)
{
	enum { COUNT = 2 * GF_SHM_SLOTS };
	struct gf_comm_request *send[COUNT], *receive;
	struct gf_error err = {""};
	int i, got, sent[COUNT];

	for (i = 0; c->rank == 0 && i < COUNT; i++) {
		sent[i] = i;
		EXPECT(!c->ops->isend(c, 1, gf_tag(6, (uint32_t)i), &sent[i], sizeof(int), &send[i],
				      &err),
		       "%s", err.text);
	}
	for (i = 0; c->rank == 1 && i < COUNT; i++)
		EXPECT(!c->ops->irecv(c, 0, gf_tag(6, (uint32_t)i), &got, sizeof(got), &receive,
				      &err) &&
			       !gf_comm_wait(c, receive, &err) && got == i,
		       "message %d: got %d; %s", i, got, err.text);
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	for (i = 0; c->rank == 0 && i < COUNT; i++)
		EXPECT(!gf_comm_wait(c, send[i], &err), "%s", err.text);
}

/* A receiver that gives up a message while reading it lets the sender go on. */
static void check_abandoned(struct gf_comm *c)
{
	const size_t size = (size_t)4 << 20;
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks;
	struct gf_comm_request *send = NULL, *receive = NULL;
	struct gf_error err = {""};
	void *out = NULL, *got = NULL;

	EXPECT(!c->ops->buffer_alloc(c, size, &out, &err) &&
		       !c->ops->buffer_alloc(c, size, &got, &err),
	       "%s", err.text);
	EXPECT(!c->ops->isend(c, right, gf_tag(5, 1), out, size, &send, &err) &&
		       !gf_comm_barrier(c, &err) &&
		       !c->ops->irecv(c, left, gf_tag(5, 1), got, size, &receive, &err) &&
		       !c->ops->test(c, receive, &err),
	       "%s", err.text);
	c->ops->cancel(c, receive);
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	EXPECT(c->ops->test(c, send, &err) == 1, "rank %d still waits", c->rank);
	c->ops->buffer_free(c, out);
	c->ops->buffer_free(c, got);
}

static void all_checks(struct gf_comm *c, void *ctx)
{
	static const size_t counts[] = {0, 1, 1024, 1025, 65536, 300001};
	struct gf_error err = {""};
	size_t i, k;

	(void)ctx;
	EXPECT(!strcmp(c->ops->name, "shm") == (c->ranks > 1), "%s", c->ops->name);
	check_transport(c);
	if (c->ranks == 1)
		return;
	check_kept(c);
	check_flood(c);
	if (c->ranks == 2)
		check_long_flood(c);
	check_sent_before_barrier(c);
	/* buffers come and go: what was mapped is let go, too */
	for (k = 0; k < 50; k++)
		check_add(c, 2000, true);
	for (i = 0; i < GF_ARRAY_LENGTH(counts); i++) {
		check_add(c, counts[i], true);
		check_add(c, counts[i], false);
	}
	check_backs(c);
	check_abandoned(c);
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
}

/* A place is mapped only if it still holds the segment that was meant, and nobody can take the
 * memory away. */
static void check_segments(void)
{
	enum { BYTES = 1 << 16 };
	struct gf_segment own, other, mapped;
	struct gf_segment_place place = {.pid = (int)getpid()}, wrong;
	char path[] = "/tmp/test_shm.XXXXXX";
	struct gf_error err = {""};
	struct stat st;
	int file, ends[2];

	EXPECT(!gf_segment_make(&own, BYTES, true, &err) &&
		       !gf_segment_make(&other, BYTES, true, &err),
	       "%s", err.text);
	place.fd = own.fd;
	place.inode = own.inode;
	place.size_bytes = BYTES;
	EXPECT(!gf_segment_map(&mapped, &place, &err), "%s", err.text);
	strcpy(own.base, "seen");
	EXPECT_TEXT(mapped.base, "seen");
	gf_segment_release(&mapped);
	EXPECT(ftruncate(own.fd, 0) && errno == EPERM, "not to be shrunk");

	wrong = place;
	wrong.fd = other.fd; /* the number is another segment's by now */
	EXPECT(gf_segment_map(&mapped, &wrong, &err) == -ESTALE, "%s", err.text);
	wrong = place;
	wrong.size_bytes = BYTES / 2;
	EXPECT(gf_segment_map(&mapped, &wrong, &err) == -ESTALE, "%s", err.text);
	wrong = place;
	wrong.fd = 1000000;
	EXPECT(gf_segment_map(&mapped, &wrong, &err) == -ENOENT, "%s", err.text);

	/* a file that its owner may cut off */
	file = mkstemp(path);
	EXPECT(file >= 0 && !ftruncate(file, BYTES) && !fstat(file, &st), "%s", path);
	wrong = place;
	wrong.fd = file;
	wrong.inode = st.st_ino;
	EXPECT(gf_segment_map(&mapped, &wrong, &err) == -ESTALE, "%s", err.text);
	close(file);
	unlink(path);
	/* and no wait for a pipe's other end */
	EXPECT(!pipe(ends), "pipe");
	wrong.fd = ends[0];
	EXPECT(gf_segment_map(&mapped, &wrong, &err) < 0, "a pipe");
	EXPECT(!mapped.base && mapped.fd == -1, "nothing is mapped");
	close(ends[0]);
	close(ends[1]);
	gf_segment_release(&own);
	gf_segment_release(&other);
}

/* The real thing: processes, MPI below. */
static int under_mpirun(void)
{
	struct gf_error err = {""};
	struct gf_comm *c;
	int rank;

	if (gf_comm_open(NULL, &c, &err)) {
		printf("%s\n", err.text);
		return 1;
	}
	rank = c->rank;
	all_checks(c, NULL);
	gf_comm_close(c);
	if (rank == 0 && !test_failures)
		puts("all checks hold");
	return TEST_END();
}

int main(void)
{
	static const int ranks[] = {1, 2, 3, 4, 7, 16};
	size_t i;

	watchdog(100);
	if (getenv("OMPI_COMM_WORLD_RANK"))
		return under_mpirun();
	check_segments();
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++)
		on_ranks_over(ranks[i], gf_comm_shm_over, all_checks, NULL);
	return TEST_END();
}
