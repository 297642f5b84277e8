/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank, which has nobody to send to. */

#include "base/heap.h"
#include "transport/pages.h"
#include "transport/transport.h"

struct gf_comm_request {
	char nothing;
};

/* What is asked for is done at once. */
static struct gf_comm_request done;

static int alone_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data,
		       size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)tag, (void)data, (void)size_bytes, (void)request;
	return gf_error_set(err, -EINVAL, "want no other rank, got %d", peer);
}

static int alone_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		       struct gf_comm_request **request, struct gf_error *err)
{
	return alone_isend(c, peer, tag, data, size_bytes, request, err);
}

static int alone_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	(void)c, (void)r, (void)err;
	return 1;
}

static void alone_cancel(struct gf_comm *c, struct gf_comm_request *r)
{
	(void)c, (void)r;
}

static int alone_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
			    const struct gf_element *element, struct gf_comm_request **request,
			    struct gf_error *err)
{
	(void)c, (void)data, (void)count_elems, (void)element, (void)err;
	*request = &done;
	return 0;
}

static void alone_abort(struct gf_comm *c, int status)
{
	(void)c, (void)status; /* the one process ends by itself */
}

static void alone_close(struct gf_comm *c)
{
	free(c);
}

struct gf_comm *gf_comm_alone_new(void)
{
	static const struct gf_comm_ops ops = {
		.name = "local",
		.isend = alone_isend,
		.irecv = alone_irecv,
		.test = alone_test,
		.cancel = alone_cancel,
		.iallreduce = alone_iallreduce,
		.abort = alone_abort,
		.buffer_alloc = gf_pages_buffer_alloc,
		.buffer_free = gf_pages_buffer_free,
		.close = alone_close,
	};
	struct gf_comm *c = gf_xcalloc(1, sizeof(*c));

	c->ops = &ops;
	c->ranks = c->local_ranks = 1;
	return c;
}
