/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/network_device.h"

#include <stdlib.h>

#include "base/heap.h"
#include "contest/device_send.h"
#include "comm/watch.h"

struct gf_network_device {
	struct gf_comm *comm;
	struct gf_watch watch;
	struct gf_contest_gpu *bench;
};

int gf_network_device_open(const struct gf_measure_network *c,
			   struct gf_network_device **device,
			   struct gf_error *err)
{
	struct gf_network_device *d = gf_xcalloc(1, sizeof(*d));
	struct gf_contest_device place = *c->device;
	int rc;

	d->comm = c->comm;
	gf_watch_init(&d->watch, c->comm, c->timeout_s);
	d->watch.self.phase = GF_PHASE_CALL;
	place.watch = &d->watch;
	rc = gf_contest_gpu_open(&place, c->comm, (int)c->lanes, c->max_bytes,
				 &d->bench, err);
	if (rc)
		gf_network_device_close(d);
	else
		*device = d;
	return rc;
}

void gf_network_device_close(struct gf_network_device *d)
{
	if (!d)
		return;
	gf_contest_gpu_close(d->bench);
	gf_watch_release(&d->watch);
	free(d);
}

int gf_network_device_meet(struct gf_network_device *d, struct gf_error *err)
{
	int rc;

	d->watch.self.calls++;
	rc = gf_comm_barrier(d->comm, err);
	return gf_network_device_conclude(d, rc, err);
}

int gf_network_device_conclude(struct gf_network_device *d, int rc,
			       struct gf_error *err)
{
	if (rc)
		gf_watch_leave(&d->watch, rc, err);
	return rc;
}

struct repeated {
	struct gf_network_device *device;
	struct gf_contest_send *send;
};

/* Each rank's own times. */
static int run(void *ctx, double *times, int repeats, struct gf_error *err)
{
	struct gf_network_device *d = ((struct repeated *)ctx)->device;
	struct gf_contest_send *send = ((struct repeated *)ctx)->send;
	int i, rc = 0;

	for (i = 0; i < repeats && rc == 0; i++) {
		rc = gf_contest_send_load(send, false, err);
		if (rc)
			break;
		rc = gf_network_device_meet(d, err);
		if (rc)
			return rc;
		rc = gf_contest_send_go(send, &times[i], err);
	}
	return gf_network_device_conclude(d, rc, err);
}

int gf_network_device_load(struct gf_network_device *d,
			   const struct gf_allreduce_cost *cost,
			   const struct gf_measure_sitting *s,
			   struct gf_contest_send **send, struct gf_error *err)
{
	size_t n = (size_t)s->messages, i;
	struct gf_burst_message *messages = gf_xcalloc(n, sizeof(*messages));
	struct gf_way way;
	int rc = gf_way_of(cost->algorithm, cost->stages, cost->nstages, &way,
			   err);

	for (i = 0; i < n && rc == 0; i++)
		messages[i] = (struct gf_burst_message){
			.way = way,
			.element = gf_element_number(GF_F32, GF_OP_SUM),
			.count_elems = s->bytes / sizeof(float),
			.simultaneous = s->lanes > 1,
		};
	if (rc == 0)
		rc = gf_contest_gpu_reserve(d->bench, n * s->bytes, err);
	if (rc == 0)
		rc = gf_contest_send_new(d->bench, messages, n, s->lanes, send,
					 err);
	free(messages);
	return rc;
}

int gf_network_device_repeat(struct gf_network_device *d,
			     struct gf_contest_send *send,
			     const struct gf_measure_budget *b,
			     struct gf_measure_samples *samples,
			     struct gf_error *err)
{
	return gf_measure_repeat(d->comm, run, &(struct repeated){d, send}, b,
				 samples, err);
}

int gf_network_device_sit(struct gf_network_device *d,
			  const struct gf_allreduce_cost *cost,
			  const struct gf_measure_sitting *s,
			  struct gf_measure_samples *samples,
			  struct gf_error *err)
{
	struct gf_contest_send *send = NULL;
	int rc = gf_network_device_load(d, cost, s, &send, err);

	if (rc == 0)
		rc = gf_network_device_repeat(d, send, &s->budget, samples,
					      err);
	gf_contest_send_free(send);
	return rc;
}

static int move(void *ctx, const struct gf_measure_hop *hop, double *times_s,
		int repeats, struct gf_error *err)
{
	struct gf_network_device *d = ctx;
	struct gf_schedule schedule;
	struct gf_contest_send *send = NULL;
	int rc;

	gf_measure_hop_schedule(hop, d->comm->rank, d->comm->ranks, &schedule);
	rc = gf_contest_gpu_reserve(
		d->bench,
		(size_t)hop->messages * schedule.count_elems * sizeof(float),
		err);
	if (rc == 0)
		rc = gf_contest_send_steps(d->bench, &schedule, hop->messages,
					   &send, err);
	if (rc == 0)
		rc = run(&(struct repeated){d, send}, times_s, repeats, err);
	gf_contest_send_free(send);
	gf_schedule_release(&schedule);
	return rc;
}

struct gf_measure_mover gf_network_device_mover(struct gf_network_device *d)
{
	return (struct gf_measure_mover){
		.comm = d->comm, .run = move, .ctx = d};
}
