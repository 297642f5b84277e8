/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/allreduce.h"

#include "base/heap.h"
#include "profiler/contest/contest.h"
#include "base/allowance.h"

const char *const gf_contest_across_names[] = {"max", "mean", "min", "rank0", NULL};
const char *const gf_contest_dtype_words[][2] = {
	{"float", "f32"}, {"double", "f64"}, {"half", "f16"}, {"bfloat16", "bf16"},
	{"int", "i32"},   {"int32", "i32"},  {NULL, NULL},
};

const char *const gf_contest_collective_words[][2] = {
	{"all_reduce_perf", "all_reduce"},
	{"reduce_scatter_perf", "reduce_scatter"},
	{"all_gather_perf", "all_gather"},
	{"allreduce", "all_reduce"},
	{"reducescatter", "reduce_scatter"},
	{"allgather", "all_gather"},
	{NULL, NULL},
};

int gf_contest_element(enum gf_dtype dtype, enum gf_op op, const char *codec, struct gf_element *e,
		       struct gf_error *err)
{
	int rc;

	*e = gf_element_number(dtype, op);
	if (!codec)
		return 0;
	rc = gf_element_coded(codec, op, e, err);
	if (rc == 0 && dtype != GF_F32)
		rc = gf_error_set(err, -EINVAL, "want f32, which a codec encodes, got %s",
				  gf_dtype_names[dtype]);
	return rc;
}

int gf_contest_gradients(const struct gf_element *e, struct gf_error *err)
{
	if (e->dtype == GF_F32 && (e->op == GF_OP_SUM || e->op == GF_OP_AVG))
		return 0;
	return gf_error_set(err, -EINVAL, "want sum or avg of f32, as gradients are, got %s of %s",
			    gf_op_names[e->op], gf_dtype_names[e->dtype]);
}

/* --- opening --------------------------------------------------------------
 */

/* A device copies by itself from and to what is pinned. */
static int pin(struct gf_contest_allreduce *b, size_t bytes, struct gf_error *err)
{
	struct gf_gpu *gpu = b->config.device.gpu;
	int rc = gpu->ops->host_pin(gpu, b->work, bytes, err);

	b->pinned = rc == 0;
	return gf_comm_agree(b->config.comm, rc, err);
}

static int allocate(struct gf_contest_allreduce *b, struct gf_error *err)
{
	struct gf_comm *c = b->config.comm;
	/* whole words, for copies */
	size_t bytes = (gf_contest_bytes(b, b->room_elems) + 3) / 4 * 4;
	int rc = gf_contest_memory_check(2.0 * (double)bytes * c->local_ranks, err);

	rc = rc ?: c->ops->buffer_alloc(c, bytes, &b->work, err);
	if (rc == 0 && !(b->source = malloc(bytes)))
		rc = gf_error_set(err, -ENOMEM, "no memory for %zu bytes", bytes);
	rc = gf_comm_agree(c, rc, err);
	if (rc == 0 && b->config.device.gpu)
		rc = gf_contest_gpu_open(&b->config.device, c, b->config.lanes, bytes, &b->device,
					 err);
	if (rc == 0 && b->device && !b->config.device.nccl)
		rc = pin(b, bytes, err);
	return rc;
}

int gf_contest_allreduce_open(const struct gf_contest_allreduce_config *config,
			      size_t largest_elems, struct gf_contest_allreduce **bench,
			      struct gf_error *err)
{
	struct gf_contest_allreduce *b = gf_xcalloc(1, sizeof(*b));
	int rc;

	b->config = *config;
	gf_watch_init(&b->watch, config->comm, config->timeout_s);
	b->watch.self.phase = GF_PHASE_CALL;
	b->config.device.watch = &b->watch;
	if (largest_elems > SIZE_MAX / 64 / (size_t)config->lanes)
		rc = gf_error_set(err, -ENOMEM, "no memory for %d messages of %zu elements",
				  config->lanes, largest_elems);
	else {
		b->room_elems = largest_elems * (size_t)config->lanes;
		rc = allocate(b, err);
	}
	if (rc == 0)
		rc = gf_chooser_new(
			&(struct gf_chooser_config){
				.comm = config->comm,
				.watch = &b->watch,
				.rule = config->rule,
				.element = config->element,
				.half = config->collective,
				.lanes = config->lanes,
				.segment_bytes = config->segment_bytes,
				.same_bits = config->proofs != NULL,
			},
			&b->chooser, err);
	if (rc)
		gf_contest_allreduce_close(b);
	else
		*bench = b;
	return rc;
}

void gf_contest_allreduce_close(struct gf_contest_allreduce *b)
{
	struct gf_comm *c;

	if (!b)
		return;
	c = b->config.comm;
	gf_chooser_free(b->chooser);
	gf_contest_gpu_close(b->device);
	if (b->pinned)
		b->config.device.gpu->ops->host_unpin(b->config.device.gpu, b->work);
	gf_watch_release(&b->watch);
	c->ops->buffer_free(c, b->work);
	free(b->source);
	free(b);
}

/* With the contestants open, or not: rc. */
static int measure(struct gf_contest *c, int rc, struct gf_contest_row *rows, struct gf_error *err)
{
	bool ready, agreed;

	if (rc == 0 && c->b->config.proofs)
		rc = gf_contest_prove(c, err);
	ready = rc == 0;
	/* opening a burst ends alike on all ranks, unless a calibration got stuck; so does a proof
	 */
	agreed = rc == -EINVAL || rc == -ENOTSUP || rc == -ENOMEM || rc == 1;
	if (ready)
		rc = gf_contest_measure(c, rows, err);
	/* what some rank may not come back from, the others hear of */
	if (rc && !agreed)
		gf_watch_leave(&c->b->watch, rc, err);
	return rc;
}

/* Contestant i: messages between GPUs, or hosts. */
static int open_burst(struct gf_contest *c, size_t i, const struct gf_burst_message *messages,
		      size_t n, int lanes, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;

	if (b->config.device.nccl)
		return gf_contest_send_new(b->device, messages, n, lanes, &c->of[i].send, err);
	return gf_burst_new(
		&(struct gf_burst_config){
			.comm = b->config.comm,
			.watch = &b->watch,
			.messages = messages,
			.nmessages = n,
			.lanes = lanes,
			.segment_bytes = b->config.segment_bytes,
		},
		&c->of[i].burst, err);
}

static int enter_sparse(struct gf_contest *c, size_t i, size_t count_elems,
			const struct gf_way *way, struct gf_error *err)
{
	struct gf_contest_sparse_config config = {
		.comm = c->b->config.comm,
		.watch = &c->b->watch,
		.way = *way,
		.codec = c->b->config.element.codec,
		.count_elems = count_elems,
		.checks = c->b->config.device.nccl != NULL,
	};
	const struct gf_burst_message message = {
		.way = *way,
		.count_elems = count_elems,
		.element = c->b->config.element,
	};
	int rc = gf_contest_sparse_new(&config, &c->of[i].sparse, err);

	if (rc == 0 && c->b->config.device.nccl)
		rc = gf_contest_send_new(c->b->device, &message, 1, 1, &c->of[i].send, err);
	return rc;
}

/* A rule's entry for the size says a codec, too, unless one was asked for. */
static int element_of(const struct gf_contest_allreduce *b, size_t count_elems,
		      struct gf_element *e, struct gf_error *err)
{
	const struct gf_element *asked = &b->config.element;
	const char *codec = NULL;

	if (b->config.rule && !asked->codec)
		codec = gf_rule_for(b->config.rule->rule, gf_contest_bytes(b, count_elems))->codec;
	*e = *asked;
	return !codec ? 0 : gf_contest_element(asked->dtype, asked->op, codec, e, err);
}

/* NCCL chooses by itself how `library` goes; hosts are tried. */
static int choose(struct gf_contest_allreduce *b, size_t count_elems, struct gf_way *way,
		  struct gf_error *err)
{
	if (!b->config.device.nccl)
		return gf_chooser_pick(b->chooser, count_elems, b->work, way, err);
	if (b->config.rule)
		return gf_choose_by_rule(b->config.rule, gf_contest_bytes(b, count_elems),
					 b->config.comm->ranks, way, err);
	*way = (struct gf_way){.algorithm = gf_algorithm_find("library")};
	return 0;
}

static int enter(struct gf_contest *c, size_t i, size_t count_elems, struct gf_contest_row *row,
		 struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	size_t lanes = (size_t)b->config.lanes, k;
	GF_FREED struct gf_burst_message *messages = NULL;
	struct gf_element element = b->config.element;
	const struct gf_tuning *v = &row->way.tuning;
	int rc = 0;

	/* MPI's; between GPUs profiler/contest/device_send.h tells NCCL */
	if (v->dialect && !b->config.device.nccl)
		return b->config.comm->ops->tell(b->config.comm,
						 v->algorithm ? v->algorithm->number : 0,
						 v->segment_bytes, &c->of[i].told, err);
	messages = gf_xcalloc(lanes, sizeof(*messages));
	if (row->chosen)
		rc = choose(b, count_elems, &row->way, err);
	if (row->chosen && rc == 0)
		rc = element_of(b, count_elems, &element, err);
	row->codec = element.codec;
	for (k = 0; k < lanes; k++)
		messages[k] = (struct gf_burst_message){
			.way = row->way,
			.half = b->config.collective,
			.owners = &c->owners,
			.count_elems = count_elems,
			.element = element,
			.simultaneous = lanes > 1,
		};
	return rc ?: open_burst(c, i, messages, lanes, b->config.lanes, err);
}

static void init(struct gf_contest *c, struct gf_contest_allreduce *b, size_t n, size_t count_elems)
{
	*c = (struct gf_contest){.b = b, .n = n, .count_elems = count_elems};
	c->of = gf_xcalloc(n, sizeof(*c->of));
	for (size_t k = 0; k < 2 * n; k++)
		c->of[k / 2].times[k % 2] = gf_xcalloc((size_t)b->config.repeats, sizeof(double));
}

/* Closes the contestants. */
static void release(struct gf_contest *c)
{
	for (size_t k = 0; k < 2 * c->n; k++)
		free(c->of[k / 2].times[k % 2]);
	for (size_t k = 0; k < c->n; k++) {
		gf_burst_free(c->of[k].burst);
		if (c->of[k].told)
			c->of[k].told->free(c->of[k].told);
		gf_contest_sparse_free(c->of[k].sparse);
		gf_contest_send_free(c->of[k].send);
	}
	free((void *)c->owners.pieces);
	free(c->of);
}

int gf_contest_allreduce_size(struct gf_contest_allreduce *b, const struct gf_way *ways,
			      size_t nways, size_t count_elems, struct gf_contest_row *rows,
			      struct gf_error *err)
{
	const size_t ranks = (size_t)b->config.comm->ranks;
	struct gf_contest c;
	int rc = 0;

	init(&c, b, nways, count_elems * (size_t)b->config.lanes);
	c.first_elems = count_elems;
	if (b->config.collective)
		c.owners = gf_layout_even(b->config.comm->ranks, count_elems);
	for (size_t i = 0; i < nways && rc == 0; i++) {
		rows[i] = (struct gf_contest_row){
			.way = ways[i],
			.chosen = !ways[i].algorithm,
			.codec = b->config.element.codec,
			.messages = (size_t)b->config.lanes,
			.size_bytes = gf_contest_bytes(b, count_elems),
			.count_elems = count_elems / (b->config.collective ? ranks : 1),
		};
		rc = ways[i].density > 0 ? enter_sparse(&c, i, count_elems, &ways[i], err)
					 : enter(&c, i, count_elems, &rows[i], err);
	}
	rc = measure(&c, rc, rows, err);
	release(&c);
	return rc;
}

int gf_contest_allreduce_try(struct gf_contest_allreduce *b, const struct gf_way *way,
			     struct gf_error *err)
{
	struct gf_contest_row row = {.way = *way};
	struct gf_contest c;
	int rc;

	init(&c, b, 1, 1);
	rc = enter(&c, 0, 1, &row, err);
	release(&c);
	return rc;
}

/* Messages as one burst and one row. */
static int measure_messages(struct gf_contest_allreduce *b, const struct gf_burst_message *messages,
			    size_t n, int lanes, struct gf_contest_row *row, struct gf_error *err)
{
	struct gf_contest c;
	size_t i, total = 0;
	int rc;

	*row = (struct gf_contest_row){.way = messages[0].way, .messages = n};
	for (i = 0; i < n; i++) {
		const struct gf_codec *codec = messages[i].element.codec;

		if (codec && (!row->codec || codec->error > row->codec->error))
			row->codec = codec;
		total += messages[i].count_elems;
	}
	row->count_elems = total;
	row->size_bytes = gf_contest_bytes(b, total);
	init(&c, b, 1, total);
	c.first_elems = messages[0].count_elems;
	rc = open_burst(&c, 0, messages, n, lanes, err);
	rc = measure(&c, rc, row, err);
	release(&c);
	return rc;
}

int gf_contest_allreduce_plan(struct gf_contest_allreduce *b, const struct gf_plan *plan,
			      struct gf_contest_row *rows, struct gf_error *err)
{
	size_t n = plan->nmessages, i;
	GF_FREED struct gf_burst_message *messages = gf_xcalloc(n, sizeof(*messages));
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		const struct gf_message *m = &plan->messages[i];

		rc = gf_way_of_message(m, &messages[i].way, err);
		if (rc == 0)
			rc = gf_element_coded(m->codec, b->config.element.op, &messages[i].element,
					      err);
		messages[i].count_elems = gf_plan_message_elems(plan, i);
		messages[i].simultaneous = m->mode == GF_MODE_SIMULTANEOUS;
	}
	for (i = 0; i < n && rc == 0; i++)
		rc = measure_messages(b, &messages[i], 1, 1, &rows[i], err);
	return rc ?: measure_messages(b, messages, n, plan->lanes, &rows[n], err);
}

int gf_contest_memory_check(double wanted_bytes, struct gf_error *err)
{
	double there = gf_allowance_memory("");

	if (there < 0 || wanted_bytes <= there)
		return 0;
	return gf_error_set(err, -ENOMEM,
			    "want %.4g bytes of memory on this host for the largest message, "
			    "inputs and results of all its ranks; %.4g are left",
			    wanted_bytes, there);
}
