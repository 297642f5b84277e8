/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI transport's promises: one rank when started by itself, any number under mpirun
 * (tests/mpi/exec.bats).
 */
#include <mpi.h>

#include "ranks.h"
#include "transport.h"

static void check_tags(struct gf_comm *c)
{
	struct gf_comm_request *request;
	struct gf_error err = {""};
	int x;

	EXPECT(c->ops->irecv(c, 0, gf_tag(GF_CHANNEL_LAST, 0), &x, sizeof(x), &request, &err) ==
		       -EOVERFLOW,
	       "channel");
	EXPECT(strstr(err.text, "channel 1073741567, match 0: more than"), "%s", err.text);
	EXPECT(c->ops->isend(c, 0, gf_tag(0, UINT32_MAX), &x, sizeof(x), &request, &err) ==
		       -EOVERFLOW,
	       "match");
}

/* A message in pieces has another length than its receive, which finds out at some piece. The
 * remaining pieces are never received; so each case has a channel of its own. */
static void check_cut_mismatch(struct gf_comm *c, size_t sent, size_t wanted)
{
	static uint32_t channel = 100;
	struct gf_comm_request *send, *receive;
	struct gf_error err = {""};
	char out[6000] = "", in[6000];
	int rc;

	channel++;
	if (c->rank == 0)
		EXPECT(!c->ops->isend(c, c->ranks - 1, gf_tag(channel, 0), out, sent, &send, &err),
		       "%s", err.text);
	if (c->rank == c->ranks - 1) {
		rc = c->ops->irecv(c, 0, gf_tag(channel, 0), in, wanted, &receive, &err);
		rc = rc ? rc : gf_comm_wait(c, receive, &err);
		EXPECT(rc == -EMSGSIZE, "%zu for %zu: %d", sent, wanted, rc);
		EXPECT(strstr(err.text, "bytes, got"), "%s", err.text);
	}
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	if (c->rank == 0)
		c->ops->cancel(c, send);
}

/* When a message has come, the first test also reports those after it that have arrived: the caller
 * may sleep after this test. */
static void check_all_told(struct gf_comm *c)
{
	enum { MESSAGES = 3 };
	struct gf_comm_request *sends[MESSAGES], *receives[MESSAGES];
	struct gf_error err = {""};
	int x[MESSAGES], i, asked;

	for (i = 0; i < MESSAGES; i++)
		EXPECT(!c->ops->irecv(c, c->rank, gf_tag(300, (uint32_t)i), &x[i], sizeof(x[i]),
				      &receives[i], &err) &&
			       !c->ops->isend(c, c->rank, gf_tag(300, (uint32_t)i), &i, sizeof(i),
					      &sends[i], &err) &&
			       !gf_comm_wait(c, sends[i], &err),
		       "%s", err.text);
	for (asked = 1; !c->ops->test(c, receives[0], &err); asked++)
		;
	EXPECT(asked <= 2, "asked %d times", asked);
	for (i = 1; i < MESSAGES; i++)
		EXPECT(c->ops->test(c, receives[i], &err) == 1, "message %d is not told", i);
}

static void check_pieces(struct gf_comm *c)
{
	gf_comm_mpi_piece_bytes(c, 1000);
	check_sizes(c);
	check_collectives(c);
	check_library(c);
	check_cut_mismatch(c, 2000, 1000);
	check_cut_mismatch(c, 1000, 2000);
	check_cut_mismatch(c, 1001, 1000);
	check_cut_mismatch(c, 5000, 2500);
	check_cut_mismatch(c, 2999, 3000);
	check_cut_mismatch(c, 3001, 2001);
}

/* What Open MPI's next communicator would be told. */
static int forced_algorithm(void)
{
	MPI_T_cvar_handle handle;
	int index, count, level, value = -1;

	MPI_T_init_thread(MPI_THREAD_SERIALIZED, &level);
	if (MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) == MPI_SUCCESS &&
	    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
		MPI_T_cvar_read(handle, &value);
		MPI_T_cvar_handle_free(&handle);
	}
	MPI_T_finalize();
	return value;
}

/* A reduction that is told something leaves the next one's default alone. */
static void check_told(struct gf_comm *c)
{
	struct gf_comm_told *told;
	struct gf_error err = {""};

	if (forced_algorithm() < 0)
		return; /* not Open MPI */
	EXPECT(!c->ops->tell(c, 4, 0, &told, &err), "%s", err.text);
	EXPECT(forced_algorithm() == 0, "%d is left", forced_algorithm());
	told->free(told);
}

int main(void)
{
	struct gf_comm *c, *again;
	struct gf_error err = {""};
	int rank;

#if defined(__SANITIZE_THREAD__)
	puts("MPI has its own threads, which are not instrumented");
	return 77;
#endif
	watchdog(100);
	gf_comm_mpi_listen();
	if (gf_comm_mpi_open(&c, &err)) {
		printf("%s\n", err.text);
		return 1;
	}
	rank = c->rank;
	EXPECT(c->local_ranks >= 1 && c->local_rank < c->local_ranks, "host");
	EXPECT(gf_comm_mpi_open(&again, &err) == -EBUSY, "once");
	check_transport(c);
	check_tags(c);
	check_all_told(c);
	check_kept(c);
	check_told(c);
	check_pieces(c);
	gf_comm_close(c);
	if (rank == 0 && !test_failures)
		puts("all checks hold");
	return TEST_END();
}
