/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX's promises, with a worker of each thread's own: those of every transport,
 * then what happens when a rank has gone.
 */
#include "comm/join.h"
#include "comm/transport.h"
#include "ranks.h"
#include "transport.h"

static int show(void *below, const void *send, size_t size_bytes, void *recv,
		struct gf_error *err)
{
	return gf_comm_allgather(below, send, size_bytes, recv, err);
}

static const struct gf_transport *ucx(void)
{
	const struct gf_transport *t;

	for (t = gf_transports; t->name && !t->join; t++)
		;
	return t->name ? t : NULL;
}

/* The threads find each other by the communicator that they have. */
static struct gf_join by(struct gf_comm *below)
{
	return (struct gf_join){.rank = below->rank,
				.ranks = below->ranks,
				.allgather = show,
				.ctx = below};
}

static void promises(struct gf_comm *below, void *ctx)
{
	const struct gf_join join = by(below);
	struct gf_error err = {""};
	struct gf_comm *c;

	(void)ctx;
	if (ucx()->join(&join, &c, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	check_transport(c);
	check_mismatch(c, 100000, 50000);
	check_mismatch(c, 50000, 100000);
	check_mismatch(c, 3000000, 2000000);
	check_shift(c, 5000000, true);
	check_shift(c, 5000000, false);
	gf_comm_close(c);
}

/* As a command opens it: the ranks see that they are on one host. Two at once,
 * and again after they have been closed. */
static void opened(struct gf_comm *below, void *ctx)
{
	const struct gf_join join = by(below);
	const struct gf_comm_how how = {.join = &join};
	struct gf_error err = {""};
	struct gf_comm *c[2];
	int round, i, rc = 0;

	(void)ctx;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 2; i++)
			rc |= gf_comm_open(&how, &c[i], &err);
		EXPECT(!rc, "%s", err.text);
		for (i = 0; i < 2 && !rc; i++) {
			EXPECT(c[i]->host == 0 &&
				       c[i]->local_rank == below->rank &&
				       c[i]->local_ranks == below->ranks,
			       "rank %d: host %d, %d of %d", below->rank,
			       c[i]->host, c[i]->local_rank, c[i]->local_ranks);
			EXPECT_TEXT(c[i]->ops->name,
				    below->ranks > 1 ? "shm" : "ucx");
			check_transport(c[i]);
		}
		for (i = 0; i < 2 && !rc; i++)
			gf_comm_close(c[i]);
	}
}

/* Rank 0's way is refused; so every rank's is, in the same words. */
static void refused(struct gf_comm *below, void *ctx)
{
	struct gf_join join = by(below);
	struct gf_comm_how how = {.join = &join};
	struct gf_error err = {""};
	struct gf_comm *c;

	(void)ctx;
	join.ranks += below->rank == 1;
	EXPECT(gf_comm_open(&how, &c, &err) == -EINVAL, "ranks");
	join.ranks = below->ranks;
	how.meet = "/tmp";
	EXPECT(gf_comm_open(&how, &c, &err) == -EINVAL, "two ways");
	EXPECT_TEXT(err.text,
		    "/tmp: want an allgather or a place to meet, got both");
	how.meet = NULL;
	how.transport = "mpi";
	EXPECT(gf_comm_open(&how, &c, &err) == -EINVAL, "MPI's launcher");
	EXPECT_TEXT(err.text, "transport mpi: its launcher says which ranks "
			      "there are, nothing else can");
	how.transport = "shm";
	EXPECT(gf_comm_open(&how, &c, &err) == -ENOTSUP, "a layer");
	EXPECT_TEXT(err.text, "transport shm: not in this build");
	how.transport = NULL;
	join.rank = join.ranks;
	EXPECT(gf_comm_open(&how, &c, &err) == -EINVAL, "rank");
	EXPECT(strstr(err.text, "want 0 <= rank < ranks"), "%s", err.text);
}

int main(void)
{
	static const int ranks[] = {1, 2, 3, 4, 7};
	size_t i;

	if (!ucx()) {
		puts("built without UCX");
		return 77;
	}
	watchdog(100);
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
		on_ranks(ranks[i], promises, NULL);
		on_ranks(ranks[i], opened, NULL);
	}
	on_ranks(3, refused, NULL);
	return TEST_END();
}
