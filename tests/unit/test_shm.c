/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/shm.h"
#include "ranks.h"
#include "transport.h"

/* Every rank adds its left neighbour's vector to its own, from memory that
 * the neighbour can be read in, and from memory that it cannot. */
static void check_add(struct gf_comm *c, size_t count, bool shared)
{
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks;
	struct gf_element element = gf_element_number(GF_F32, GF_OP_SUM);
	struct gf_request *send, *receive;
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
		EXPECT(!c->ops->buffer_alloc(c, (count + 1) * sizeof(float),
					     &memory, &err),
		       "%s", err.text);
	else
		memory = gf_xcalloc(count + 1, sizeof(float));
	out = memory;
	for (i = 0; i < count; i++) {
		out[i] = (float)(c->rank + (int)(i % 100));
		sum[i] = 1000;
	}
	EXPECT(!c->ops->isend(c, right, gf_tag(1, 2), out,
			      count * sizeof(float), &send, &err),
	       "%s", err.text);
	EXPECT(!c->ops->irecv_reduce(c, left, gf_tag(1, 2), sum, count,
				     &element, &receive, &err),
	       "%s", err.text);
	EXPECT(!gf_comm_wait(c, receive, &err), "%s", err.text);
	EXPECT(!gf_comm_wait(c, send, &err), "%s", err.text);
	for (i = 0; i < count; i++)
		wrong += sum[i] != (float)(1000 + left + (int)(i % 100));
	EXPECT(!wrong && sum[count] == 0, "rank %d: %zu of %zu", c->rank, wrong,
	       count);
	if (shared)
		c->ops->buffer_free(c, memory);
	else
		free(memory);
	free(sum);
}

/* More messages than the queue holds, before anybody receives: they wait, and
 * come in order. */
static void check_flood(struct gf_comm *c)
{
	enum { COUNT = 300 };
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks;
	struct gf_request *send[COUNT], *receive;
	struct gf_error err = {""};
	int out[COUNT], got, i;

	for (i = 0; i < COUNT; i++) {
		out[i] = i;
		EXPECT(!c->ops->isend(c, right, gf_tag(3, (uint32_t)i % 2),
				      &out[i], sizeof(int), &send[i], &err),
		       "%s", err.text);
	}
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	for (i = 0; i < COUNT; i++) {
		int want = i < COUNT / 2 ? 2 * i + 1 : 2 * (i - COUNT / 2);

		EXPECT(!c->ops->irecv(c, left, gf_tag(3, (uint32_t)want % 2),
				      &got, sizeof(got), &receive, &err),
		       "%s", err.text);
		EXPECT(!gf_comm_wait(c, receive, &err) && got == want,
		       "want %d, got %d", want, got);
	}
	for (i = 0; i < COUNT; i++)
		EXPECT(!gf_comm_wait(c, send[i], &err), "%s", err.text);
}

static void all_checks(struct gf_comm *c, void *ctx)
{
	static const size_t counts[] = {0, 1, 1024, 1025, 65536, 300001};
	struct gf_error err = {""};
	size_t i, k;

	(void)ctx;
	EXPECT(!strcmp(c->ops->name, "shm") == (c->ranks > 1), "%s",
	       c->ops->name);
	check_transport(c);
	if (c->ranks == 1)
		return;
	check_flood(c);
	/* buffers come and go: what was mapped is let go, too */
	for (k = 0; k < 50; k++)
		check_add(c, 2000, true);
	for (i = 0; i < GF_ARRAY_LENGTH(counts); i++) {
		check_add(c, counts[i], true);
		check_add(c, counts[i], false);
	}
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
}

/* The real thing: processes, MPI below. */
static int under_mpirun(void)
{
	struct gf_error err = {""};
	struct gf_comm *c;
	int rank;

	if (gf_comm_open(&c, &err)) {
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
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++)
		on_ranks_over(ranks[i], gf_comm_shm_over, all_checks, NULL);
	return TEST_END();
}
