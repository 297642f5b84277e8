/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCC as a contestant (plugin.h), where it is installed under UCC_HOME:
 *	cc -shared -fPIC -O2 -I$UCC_HOME/include -o ucc.so ucc.c \
 *		-L$UCC_HOME/lib -Wl,-rpath,$UCC_HOME/lib -lucc
 * What it goes over is UCX's choice (UCX_TLS). Its collectives are prepared
 * once per buffer (persistent), as ours are. One context per way: the
 * algorithm is chosen by its environment, when the library is opened.
 */
#include <stdio.h>
#include <stdlib.h>
#include <ucc/api/ucc.h>

#include "plugin.h"

struct ucc_peer {
	ucc_lib_h lib;
	ucc_context_h context;
	ucc_team_h team;
	ucc_coll_req_h request;
};

static const char *const ways[] = {"default", "knomial", "sra", NULL};
static const char *const tunes[] = {NULL, "allreduce:@knomial:inf", "allreduce:@sra_knomial:inf"};

/* UCC's callbacks have no place for it but a pointer that is not const. */
static struct gf_peer_place here;

static int failed(ucc_status_t status, const char *what)
{
	if (status == UCC_OK)
		return 0;
	fprintf(stderr, "ucc: %s: %s\n", what, ucc_status_string(status));
	return -1;
}

static ucc_status_t allgather(void *send, void *recv, size_t size_bytes, void *info, void **request)
{
	(void)info;
	*request = recv; /* any: it is over when it returns */
	return here.allgather(send, size_bytes, recv) ? UCC_ERR_NO_MESSAGE : UCC_OK;
}

static ucc_status_t over(void *request)
{
	(void)request;
	return UCC_OK;
}

static int open_context(struct ucc_peer *p, const ucc_oob_coll_t *oob)
{
	ucc_lib_params_t lib = {.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE,
				.thread_mode = UCC_THREAD_SINGLE};
	ucc_context_params_t context = {.mask = UCC_CONTEXT_PARAM_FIELD_OOB, .oob = *oob};
	ucc_lib_config_h lib_config;
	ucc_context_config_h config;
	int rc;

	if (failed(ucc_lib_config_read(NULL, NULL, &lib_config), "config"))
		return -1;
	rc = failed(ucc_init(&lib, lib_config, &p->lib), "init");
	ucc_lib_config_release(lib_config);
	if (rc || failed(ucc_context_config_read(p->lib, NULL, &config), "config"))
		return -1;
	rc = failed(ucc_context_create(p->lib, &context, config, &p->context), "context");
	ucc_context_config_release(config);
	return rc;
}

static int open_team(struct ucc_peer *p, const ucc_oob_coll_t *oob)
{
	ucc_team_params_t params = {
		.mask = UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE |
			UCC_TEAM_PARAM_FIELD_OOB,
		.oob = *oob,
		.ep = (uint64_t)here.rank,
		.ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG,
	};
	ucc_status_t status;

	status = ucc_team_create_post(&p->context, 1, &params, &p->team);
	while (status == UCC_OK || status == UCC_INPROGRESS) {
		status = ucc_team_create_test(p->team);
		if (status == UCC_OK)
			return 0;
		ucc_context_progress(p->context);
	}
	return failed(status, "team");
}

static void close_peer(void *state)
{
	struct ucc_peer *p = state;

	if (p->team)
		while (ucc_team_destroy(p->team) == UCC_INPROGRESS)
			ucc_context_progress(p->context);
	/* over TCP ucc_context_destroy waits for ranks that have left: context and library go with
	 * the process */
	free(p);
}

static void *open_peer(const struct gf_peer_place *place, int way)
{
	struct ucc_peer *p = calloc(1, sizeof(*p));
	ucc_oob_coll_t oob = {
		.allgather = allgather,
		.req_test = over,
		.req_free = over,
		.n_oob_eps = (uint32_t)place->ranks,
		.oob_ep = (uint32_t)place->rank,
	};
	int rc;

	here = *place;
	if (tunes[way])
		setenv("UCC_TL_UCP_TUNE", tunes[way], 1);
	rc = !p || open_context(p, &oob) || open_team(p, &oob);
	if (tunes[way])
		unsetenv("UCC_TL_UCP_TUNE");
	if (rc && p)
		close_peer(p);
	return rc ? NULL : p;
}

static int start(void *state, float *data, size_t count)
{
	struct ucc_peer *p = state;
	ucc_coll_args_t args = {
		.mask = UCC_COLL_ARGS_FIELD_FLAGS,
		.flags = UCC_COLL_ARGS_FLAG_IN_PLACE | UCC_COLL_ARGS_FLAG_PERSISTENT,
		.coll_type = UCC_COLL_TYPE_ALLREDUCE,
		.op = UCC_OP_SUM,
		.dst.info = {.buffer = data,
			     .count = count,
			     .datatype = UCC_DT_FLOAT32,
			     .mem_type = UCC_MEMORY_TYPE_HOST},
	};

	return failed(ucc_collective_init(&args, &p->request, p->team), "allreduce");
}

static int run(void *state, float *data, size_t count)
{
	struct ucc_peer *p = state;
	ucc_status_t status;

	(void)data;
	(void)count;
	status = ucc_collective_post(p->request);
	if (status < 0)
		return failed(status, "allreduce");
	while ((status = ucc_collective_test(p->request)) > 0)
		ucc_context_progress(p->context);
	return failed(status, "allreduce");
}

static void end(void *state)
{
	struct ucc_peer *p = state;

	ucc_collective_finalize(p->request);
	p->request = NULL;
}

const struct gf_peer gf_peer = {
	.name = "ucc",
	.ways = ways,
	.open = open_peer,
	.start = start,
	.run = run,
	.end = end,
	.close = close_peer,
};
