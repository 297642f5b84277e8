/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX: opens and closes. The transport's files are in transport/ucx_state.h. */
#include "transport/transport.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>

#include <ucs/debug/debug.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/timeout.h"
#include "transport/pages.h"
#include "transport/ucx_state.h"

int gf_ucx_fail(ucs_status_t status, const char *call, struct gf_error *err)
{
	return gf_error_set(err, -EIO, "%s: %s", call, ucs_status_string(status));
}

/* --- signals ------------------------------------------------------------ */

static bool is_of_ucx(int number)
{
	struct sigaction now;
	Dl_info handler, ucx;

	return !sigaction(number, NULL, &now) && now.sa_handler &&
	       dladdr((void *)(uintptr_t)now.sa_handler, &handler) &&
	       dladdr((void *)(uintptr_t)ucs_debug_disable_signal, &ucx) &&
	       handler.dli_fbase == ucx.dli_fbase;
}

static bool is_told(const struct gf_comm_how *how, const char *variable)
{
	return how->variable && how->variable(variable);
}

/* What was there before UCX comes back. */
static void settle(const struct gf_comm_how *how)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(numbers); i++)
		if (!is_told(how, "UCX_HANDLE_ERRORS") && is_of_ucx(numbers[i]))
			ucs_debug_disable_signal(numbers[i]);
}

/* --- the end ------------------------------------------------------------ */

static int out_of_time(void *until_s, struct gf_error *err)
{
	return gf_clock_s() < *(double *)until_s ? 0 : gf_error_set(err, -ETIMEDOUT, "closing");
}

/* All at once: one that does not end keeps no other waiting. */
static void close_endpoints(struct gf_ucx *u, double until_s)
{
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = u->comm.broken ? UCP_EP_CLOSE_FLAG_FORCE : 0,
	};
	GF_FREED ucs_status_ptr_t *handles = gf_xcalloc((size_t)u->comm.ranks, sizeof(*handles));

	for (int rank = 0; rank < u->comm.ranks; rank++)
		if (u->peers[rank].endpoint)
			handles[rank] = ucp_ep_close_nbx(u->peers[rank].endpoint, &param);
	for (int rank = 0; rank < u->comm.ranks; rank++) {
		if (!UCS_PTR_IS_PTR(handles[rank]))
			continue;
		while (ucp_request_check_status(handles[rank]) == UCS_INPROGRESS &&
		       gf_clock_s() < until_s)
			ucp_worker_progress(u->worker);
		ucp_request_free(handles[rank]);
	}
}

/* Memory for a message that nobody wants. */
struct sink {
	struct sink *next;
	char data[];
};

/* Takes what has come and was not received: UCX has a warning for each. */
static struct sink *drain(struct gf_ucx *u)
{
	const ucp_request_param_t param = {0};
	struct sink *all = NULL, *one;
	ucp_tag_recv_info_t info;
	ucp_tag_message_h message;
	ucs_status_ptr_t handle;

	while ((message = ucp_tag_probe_nb(u->worker, 0, 0, 1, &info))) {
		one = gf_xmalloc(sizeof(*one) + info.length);
		one->next = all;
		all = one;
		handle = ucp_tag_msg_recv_nbx(u->worker, one->data, info.length, message, &param);
		if (UCS_PTR_IS_PTR(handle))
			ucp_request_free(handle);
	}
	return all;
}

/* UCX lets go of all that it still has: some of it only with the worker. */
static void let_go(struct gf_ucx *u, double until_s)
{
	struct gf_comm_request *r, *next;
	struct sink *sinks, *sink;

	for (r = u->live; r; r = next) {
		next = r->next;
		ucp_request_cancel(u->worker, r->handle);
	}
	close_endpoints(u, until_s);
	sinks = drain(u);
	ucp_worker_destroy(u->worker);
	while ((sink = sinks)) {
		sinks = sink->next;
		free(sink);
	}
	u->worker = NULL;
	for (r = u->live; r; r = r->next)
		r->done = true;
	u->live = NULL;
}

static void ucx_sever(struct gf_comm *c)
{
	let_go(gf_ucx_of(c), gf_clock_s() + GF_TIMEOUT_CONNECTIONS_S);
}

static void release(struct gf_ucx *u)
{
	if (u->worker)
		ucp_worker_destroy(u->worker);
	if (u->context)
		ucp_cleanup(u->context);
	gf_slab_release(&u->requests);
	free(u->cards.sealed);
	free(u->peers);
	free(u);
}

static void ucx_close(struct gf_comm *c)
{
	struct gf_ucx *u = gf_ucx_of(c);
	const double begun_s = gf_clock_s();

	/* nobody closes a connection that another rank still reads */
	if (!c->broken) {
		double until_s = begun_s + GF_TIMEOUT_PART_S;

		c->on_wait = out_of_time;
		c->on_wait_ctx = &until_s;
		c->broken |= gf_comm_barrier(c, NULL) != 0;
		c->on_wait = NULL;
		c->on_wait_ctx = NULL;
	}
	if (u->worker)
		let_go(u, begun_s + GF_TIMEOUT_CONNECTIONS_S);
	release(u);
}

static void ucx_abort(struct gf_comm *c, int status)
{
	if (c->launcher)
		c->launcher->ops->abort(c->launcher, status);
}

/* --- in between --------------------------------------------------------- */

/* A message under way may yet come, until all were given up. */
static void ucx_buffer_free(struct gf_comm *c, void *data)
{
	if (!c->broken || !gf_ucx_of(c)->worker)
		gf_pages_free(data);
}

static void ucx_rest(struct gf_comm *c, double most_s)
{
	struct gf_ucx *u = gf_ucx_of(c);
	struct pollfd wake = {.fd = u->wake_fd, .events = POLLIN};
	struct timespec most = {.tv_sec = (time_t)most_s,
				.tv_nsec = (long)((most_s - (double)(time_t)most_s) * 1e9)};

	/* what is busy has something to be polled for */
	if (ucp_worker_arm(u->worker) == UCS_OK)
		(void)ppoll(&wake, 1, &most, NULL);
}

/* --- the beginning ------------------------------------------------------ */

static bool is_without_rdma(void)
{
	DIR *folder = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	bool found = false;

	while (folder && !found && (entry = readdir(folder)))
		found = entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return !found;
}

/* What UCX does unless the user says else in its own variable. */
static const struct setting {
	const char *name, *variable, *value;
	bool (*holds)(void); /* (optional) */
} settings[] = {
	/* Emulated hosts share a kernel, and not their memory. */
	{"TLS", "UCX_TLS", "^sm", NULL},
	/* On sockets a rendezvous costs each segment of a ring a round trip:
	 * 1 MiB on four hosts at 1 Gb/s took 1.7 times as long. Receives are posted early, so that
	 * little is buffered. */
	{"RNDV_THRESH", "UCX_RNDV_THRESH", "inf", is_without_rdma},
	{NULL, NULL, NULL, NULL},
};

static int begin_context(struct gf_ucx *u, const struct gf_comm_how *how, struct gf_error *err)
{
	const ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_TAG_SENDER_MASK |
			      UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
		.tag_sender_mask = GF_UCX_SOURCE_MASK,
		.estimated_num_eps = (size_t)u->comm.ranks,
	};
	const struct setting *s;
	ucp_config_t *config = NULL;
	int rc = 0;

	UCX_TRY(ucp_config_read, NULL, NULL, &config);
	for (s = settings; s->name; s++)
		if (!is_told(how, s->variable) && (!s->holds || s->holds()))
			UCX_TRY(ucp_config_modify, config, s->name, s->value);
	UCX_TRY(ucp_init, &params, config, &u->context);
out:
	if (config)
		ucp_config_release(config);
	return rc;
}

static int begin_worker(struct gf_ucx *u, const struct gf_comm_how *how, struct gf_error *err)
{
	const ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
	};
	int rc = begin_context(u, how, err);

	if (rc)
		return rc;
	UCX_TRY(ucp_worker_create, u->context, &params, &u->worker);
	UCX_TRY(ucp_worker_get_efd, u->worker, &u->wake_fd);
out:
	return rc;
}

static int exchange(struct gf_ucx *u, const struct gf_join *join, int rc, struct gf_error *err)
{
	ucp_address_t *address = NULL;
	size_t size_bytes = 0;
	ucs_status_t status;

	if (!rc) {
		status = ucp_worker_get_address(u->worker, &address, &size_bytes);
		if (status != UCS_OK)
			rc = gf_ucx_fail(status, "ucp_worker_get_address", err);
	}
	rc = gf_cards_show(join, rc, address, size_bytes, &u->cards, err);
	if (address)
		ucp_worker_release_address(u->worker, address);
	return rc;
}

/*
 * The ranks that the allgather connects, over UCX: sockets, InfiniBand, RoCE, as UCX finds them.
 * Shared memory between processes is left to the layer above (transport/transport.h) unless UCX_TLS
 * says otherwise. Any number of communicators in a process. A rank that dies breaks its
 * connections: what waits for it fails with -ECONNRESET, and the communicator closes all the same.
 * Collective.
 */
static int join(const struct gf_comm_how *how, const struct gf_join *join, struct gf_comm **comm,
		struct gf_error *err)
{
	struct gf_ucx *u;
	int rc;

	if (join->ranks < 1 || join->ranks > GF_UCX_RANKS_MOST || join->rank < 0 ||
	    join->rank >= join->ranks)
		return gf_error_set(err, -EINVAL, "want 0 <= rank < ranks <= %d, got rank %d of %d",
				    GF_UCX_RANKS_MOST, join->rank, join->ranks);
	u = gf_xcalloc(1, sizeof(*u));
	u->ops = gf_ucx_messages;
	u->ops.name = "ucx";
	u->ops.rest = ucx_rest;
	u->ops.sever = ucx_sever;
	u->ops.abort = ucx_abort;
	u->ops.buffer_alloc = gf_pages_buffer_alloc;
	u->ops.buffer_free = ucx_buffer_free;
	u->ops.close = ucx_close;
	u->comm.ops = &u->ops;
	u->comm.priv = u;
	u->comm.rank = join->rank;
	u->comm.ranks = join->ranks;
	u->round = 1;
	gf_slab_init(&u->requests, sizeof(struct gf_comm_request));
	u->peers = gf_xcalloc((size_t)join->ranks, sizeof(*u->peers));
	rc = begin_worker(u, how, err);
	rc = exchange(u, join, rc, err);
	if (rc)
		release(u);
	else
		*comm = &u->comm;
	return rc;
}

const struct gf_transport gf_transport_ucx = {
	.name = "ucx",
	.description = "between all ranks, by UCX; with or without a launcher",
	.place = 20,
	.settle = settle,
	.join = join,
};
