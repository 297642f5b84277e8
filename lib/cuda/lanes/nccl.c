/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/lanes/nccl.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include <nccl.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/library.h"

/* The loaded functions, with NCCL's own names and types, from its header. */
#define CALLS(CALL)                                                                                \
	CALL(GetVersion)                                                                           \
	CALL(GetErrorString)                                                                       \
	CALL(GetLastError)                                                                         \
	CALL(GetUniqueId)                                                                          \
	CALL(CommInitRankConfig)                                                                   \
	CALL(CommSplit)                                                                            \
	CALL(CommGetAsyncError)                                                                    \
	CALL(CommAbort)                                                                            \
	CALL(CommFinalize)                                                                         \
	CALL(CommDestroy)                                                                          \
	CALL(GroupStart)                                                                           \
	CALL(GroupEnd)                                                                             \
	CALL(AllReduce)                                                                            \
	CALL(ReduceScatter)                                                                        \
	CALL(AllGather)                                                                            \
	CALL(Send)                                                                                 \
	CALL(Recv)

#define POINTER(name) __typeof__(nccl##name) *name;
static struct {
	CALLS(POINTER)
} nccl;

#define SYMBOL(name) {"nccl" #name, offsetof(__typeof__(nccl), name)},
static const struct gf_symbol symbols[] = {CALLS(SYMBOL)};

_Static_assert(sizeof(ncclUniqueId) == GF_NCCL_ID_BYTES, "an id");

static ncclComm_t comm_of(struct gf_nccl_comm *c)
{
	return (ncclComm_t)(void *)c;
}

/* A thread of NCCL's writes there, perhaps long after the call has returned: it must not be on the
 * stack. */
static ncclComm_t *place_of(struct gf_nccl_comm **c)
{
	return (ncclComm_t *)(void *)c;
}

/* In progress is no failure: `state` tells the end. */
static int check(ncclResult_t result, ncclComm_t comm, const char *what, struct gf_error *err)
{
	const char *more;

	if (result == ncclSuccess || result == ncclInProgress)
		return 0;
	more = nccl.GetLastError(comm);
	return gf_error_set(err, -EIO, "%s: %s%s%s", what, nccl.GetErrorString(result),
			    more && *more ? ": " : "", more ? more : "");
}

#define NCCL_CHECK(comm, name, ...) check(nccl.name(__VA_ARGS__), comm, "nccl" #name, err)

static struct gf_nccl_ops ops;

static int unique_id(unsigned char id[GF_NCCL_ID_BYTES], struct gf_error *err)
{
	ncclUniqueId own;
	int rc = NCCL_CHECK(NULL, GetUniqueId, &own);

	if (!rc)
		memcpy(id, &own, sizeof(own));
	return rc;
}

static int comm_new(const unsigned char id[GF_NCCL_ID_BYTES], int ranks, int rank,
		    struct gf_nccl_blocks blocks, struct gf_nccl_comm **c, struct gf_error *err)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId own;

	/* an older NCCL reads as much of a newer configuration as it knows */
	if (ops.version < NCCL_VERSION_CODE)
		config.version = (unsigned)ops.version;
	memcpy(&own, id, sizeof(own));
	config.blocking = 0;
	if (blocks.least > 0)
		config.minCTAs = blocks.least;
	if (blocks.most > 0)
		config.maxCTAs = blocks.most;
	return NCCL_CHECK(NULL, CommInitRankConfig, place_of(c), ranks, own, rank, &config);
}

/* The configuration is the parent's. */
static int comm_split(struct gf_nccl_comm *parent, int color, int key, struct gf_nccl_comm **c,
		      struct gf_error *err)
{
	return NCCL_CHECK(comm_of(parent), CommSplit, comm_of(parent), color, key, place_of(c),
			  NULL);
}

static int state(struct gf_nccl_comm *c, struct gf_error *err)
{
	ncclResult_t now = ncclSuccess;
	int rc = NCCL_CHECK(comm_of(c), CommGetAsyncError, comm_of(c), &now);

	rc = rc ?: check(now, comm_of(c), "NCCL", err);
	return rc ?: now == ncclSuccess;
}

/* An abort ends its communicator's kernels and then frees memory, which may wait for the whole
 * device. Within a group, which NCCL allows since 2.22, all kernels are told to end before anything
 * is freed. */
static void abort_comms(struct gf_nccl_comm *const *comms, size_t n)
{
	(void)nccl.GroupStart();
	for (size_t i = 0; i < n; i++)
		if (comms[i])
			(void)nccl.CommAbort(comm_of(comms[i]));
	(void)nccl.GroupEnd();
}

#define LEAVE_S 10.0 /* for all ranks to come to the end */

/* A non-blocking communicator must be finalised before it is destroyed. */
static void destroy(struct gf_nccl_comm *c)
{
	const double until_s = gf_clock_s() + LEAVE_S;
	int now = 0;

	if (!c)
		return;
	(void)nccl.CommFinalize(comm_of(c));
	while (!(now = state(c, NULL)) && gf_clock_s() < until_s)
		sched_yield();
	if (now == 1)
		(void)nccl.CommDestroy(comm_of(c));
	else
		(void)nccl.CommAbort(comm_of(c));
}

static int group_begin(struct gf_error *err)
{
	return NCCL_CHECK(NULL, GroupStart);
}

static int group_end(struct gf_error *err)
{
	return NCCL_CHECK(NULL, GroupEnd);
}

static int all_reduce(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
		      size_t count_elems, struct gf_error *err)
{
	return NCCL_CHECK(comm_of(c), AllReduce, data, data, count_elems, ncclFloat32, ncclSum,
			  comm_of(c), (cudaStream_t)s);
}

static int reduce_scatter(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
			  size_t part_elems, int rank, struct gf_error *err)
{
	return NCCL_CHECK(comm_of(c), ReduceScatter, data, data + (size_t)rank * part_elems,
			  part_elems, ncclFloat32, ncclSum, comm_of(c), (cudaStream_t)s);
}

static int all_gather(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
		      size_t part_elems, int rank, struct gf_error *err)
{
	return NCCL_CHECK(comm_of(c), AllGather, data + (size_t)rank * part_elems, data, part_elems,
			  ncclFloat32, comm_of(c), (cudaStream_t)s);
}

static int send(struct gf_nccl_comm *c, struct gf_gpu_stream *s, const void *data,
		size_t size_bytes, int peer, struct gf_error *err)
{
	return NCCL_CHECK(comm_of(c), Send, data, size_bytes, ncclUint8, peer, comm_of(c),
			  (cudaStream_t)s);
}

static int recv(struct gf_nccl_comm *c, struct gf_gpu_stream *s, void *data, size_t size_bytes,
		int peer, struct gf_error *err)
{
	return NCCL_CHECK(comm_of(c), Recv, data, size_bytes, ncclUint8, peer, comm_of(c),
			  (cudaStream_t)s);
}

static struct gf_nccl_ops ops = {
	.name = "nccl",
	.unique_id = unique_id,
	.tell = gf_nccl_tell,
	.untell = gf_nccl_untell,
	.comm_new = comm_new,
	.comm_split = comm_split,
	.state = state,
	.abort = abort_comms,
	.destroy = destroy,
	.group_begin = group_begin,
	.group_end = group_end,
	.all_reduce = all_reduce,
	.reduce_scatter = reduce_scatter,
	.all_gather = all_gather,
	.send = send,
	.recv = recv,
};

/* Written once, under pthread_once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct gf_error reason;
static int loaded;

/* Aborts in groups are older; with this one lanes were measured. */
#define OLDEST 22600

/* The order of launches is not asked for (NCCL_LAUNCH_ORDER_IMPLICIT): all ranks enqueue alike, and
 * kernels of all lanes fit on a GPU at once. On an H100 with NCCL 2.28.9 it made two lanes go one
 * after the other, 132 us for 72. */
static void load(void)
{
	struct gf_error why = {""};
	int version = 0;

	if (gf_library_open("libnccl.so.2", symbols, GF_ARRAY_LENGTH(symbols), &nccl, &why)) {
		loaded = gf_error_set(&reason, -ENOTSUP, "no NCCL here: %s", why.text);
		return;
	}
	(void)nccl.GetVersion(&version);
	ops.version = version;
	if (version < OLDEST)
		loaded =
			gf_error_set(&reason, -ENOTSUP,
				     "want NCCL of version %d or later, found %d", OLDEST, version);
}

int gf_nccl_open_library(const struct gf_nccl_ops **table, struct gf_error *err)
{
	pthread_once(&once, load);
	if (loaded)
		return gf_error_set(err, loaded, "%s", reason.text);
	*table = &ops;
	return 0;
}
