/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/overlap_parts.h"

#include <stdlib.h>

#include "base/heap.h"
#include "measure/network_device.h"

/* Messages by NCCL, on a lane beside the stream that computes. */
struct load {
	struct gf_network_device *device;
	struct gf_contest_send *send;
	struct gf_comm *comm;
	size_t n;
	double *ends_s;                 /* from backward's begin */
	struct gf_message_times *times; /* likewise */
};

static void close_load(void *load)
{
	struct load *l = load;

	gf_contest_send_free(l->send);
	gf_network_device_close(l->device);
	free(l->ends_s);
	free(l->times);
	free(l);
}

static int open_load(const struct gf_measure_overlap *c,
		     const struct gf_measure_sitting *s, void **load,
		     struct gf_error *err)
{
	const struct gf_measure_network network = {
		.comm = c->comm,
		.device = c->device,
		.lanes = (size_t)s->lanes,
		.max_bytes = s->bytes * (size_t)s->messages,
		.timeout_s = c->timeout_s,
	};
	struct load *l = gf_xcalloc(1, sizeof(*l));
	int rc;

	l->comm = c->comm;
	l->n = (size_t)s->messages;
	l->ends_s = gf_xcalloc(l->n, sizeof(*l->ends_s));
	l->times = gf_xcalloc(l->n, sizeof(*l->times));
	rc = gf_network_device_open(&network, &l->device, err);
	if (rc == 0)
		rc = gf_network_device_load(l->device, c->cost, s, &l->send,
					    err);
	if (rc)
		close_load(l);
	else
		*load = l;
	return rc;
}

static int alone(void *load, const struct gf_measure_budget *budget,
		 struct gf_measure_samples *samples, struct gf_error *err)
{
	struct load *l = load;

	return gf_network_device_repeat(l->device, l->send, budget, samples,
					err);
}

/* Messages of a lane follow each other. */
static double busy_s(struct load *l, double alone_s, double until_s)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		l->times[i].start_s = i ? l->ends_s[i - 1] : 0;
		l->times[i].end_s = l->ends_s[i];
	}
	return alone_s * gf_measure_share_done(l->times, l->n, until_s);
}

/* Forward begins when the messages are enqueued, too: so nothing of what the
 * host does is between their begin and backward's. */
static int beside(struct load *l, struct gf_measure_pass *pass, double *with_s,
		  struct gf_error *err)
{
	int rc;

	gf_measure_pass_hold(pass);
	gf_measure_pass_forward(pass);
	gf_measure_pass_begin(pass);
	rc = gf_contest_send_begin(l->send, pass->begun, err);
	*with_s = gf_measure_pass_backward(pass);
	return rc ? rc
		  : gf_contest_send_end(l->send, pass->rc ? NULL : pass->begun,
					l->ends_s, err);
}

static int once(void *load, struct gf_measure_pass *pass, double alone_s,
		struct gf_measure_mutual *mutual, struct gf_error *err)
{
	struct load *l = load;
	double without_s, with_s = 0;
	int rc = gf_network_device_meet(l->device, err);

	if (rc)
		return rc;
	gf_measure_pass_hold(pass);
	gf_measure_pass_forward(pass);
	gf_measure_pass_begin(pass);
	without_s = gf_measure_pass_backward(pass);
	rc = gf_network_device_meet(l->device, err);
	if (rc)
		return rc;
	rc = beside(l, pass, &with_s, err);
	if (rc == 0)
		mutual->overlap_slowdown = gf_measure_slowdown(
			with_s - without_s, busy_s(l, alone_s, with_s));
	return gf_network_device_conclude(l->device, rc, err);
}

static int gather(void *load, const void *mine, size_t bytes, void *all,
		  struct gf_error *err)
{
	const struct load *l = load;

	return gf_comm_allgather(l->comm, mine, bytes, all, err);
}

const struct gf_measure_traffic gf_measure_traffic_device = {
	.backwards = 0.5, /* all of them end within it */
	.open = open_load,
	.alone = alone,
	.once = once,
	.gather = gather,
	.close = close_load,
};
