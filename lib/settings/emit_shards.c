/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets that are told shards. What a target cannot be told is taken out of the plan, which is
 * then predicted again: the time that is named is that of the settings. Beside it stands what the
 * target's own rule takes by default, with the planner's costs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "collectives/codecs/codec.h"
#include "documents/plan_parts.h"
#include "json/json.h"
#include "planner/shards.h"
#include "simulator/predict.h"
#include "settings/emit.h"
#include "lists/gf_emitters.h"

struct job {
	const struct gf_emitter *e;
	struct gf_axes axes; /* borrows from the request's */
	struct gf_request r;
	struct gf_emit_times t;
	double before_s; /* of a step by default: all but what follows backward */
};

static bool has_units(const struct gf_plan *p)
{
	return gf_shard_has(&p->shard, GF_SHARD_PARAMETERS);
}

static bool stays(const struct gf_plan *p, size_t unit)
{
	return !gf_shard_regathers(&p->shard, p->messages, unit);
}

static int method_with(unsigned traits)
{
	int k = 0;

	while (!gf_shard_method_has(k, traits))
		k++;
	return k;
}

static double elems_of(const struct gf_plan *p, size_t unit)
{
	return (double)gf_plan_message_elems(p, unit);
}

static double all_elems(const struct gf_plan *p)
{
	return (double)gf_model_profile_elems(p->model);
}

/* As many elements as `ahead` units have in the mean. */
static double ahead_elems(const struct gf_plan *p)
{
	return ceil((double)p->shard.ahead * all_elems(p) / (double)p->nmessages);
}

/* --- from a request to a plan that the target can be told ------------------ */

/* The method that was asked for, or given; the target's where there is none to choose from. */
static void open_job(struct job *j, const struct gf_request *r, const struct gf_plan *given)
{
	struct gf_axes *a = &j->axes;
	int inner = 1;

	gf_axes_init(a);
	if (r->axes)
		*a = *r->axes;
	j->r.axes = a;
	j->r.lanes = r->lanes ? r->lanes : 1;
	if (a->shard < 0 && a->memory.limit_bytes)
		a->shard = method_with(GF_SHARD_OPEN);
	if (a->shard < 0 ||
	    (j->e->shards & GF_SHARD_PARAMETERS && gf_shard_method_has(a->shard, GF_SHARD_OPEN)))
		a->shard = method_with(j->e->shards);
	if (!given)
		return;
	a->shard = given->shard.method;
	a->memory = given->memory;
	for (size_t i = 0; i < r->fabric.nlevels; i++) {
		inner *= (int)r->fabric.levels[i].size;
		if (inner == given->shard.group_ranks)
			a->shard_level = r->fabric.levels[i].name;
	}
}

static int plan_units(struct job *j, const char *units, struct gf_plan *p, struct gf_text *notes,
		      struct gf_error *err)
{
	char *asked = j->axes.shard_units;
	int rc;

	if (j->axes.shard > 0)
		j->axes.shard_units = (char *)units;
	rc = gf_request_plan(&j->r, p, notes, err);
	j->axes.shard_units = asked;
	return rc;
}

/* How long the last reduce-scatter takes beyond backward. */
static double tail_s(const struct gf_plan *p)
{
	double ready_s = 0, end_s = 0;

	for (size_t i = 0; i < p->nmessages; i++) {
		ready_s = fmax(ready_s, p->predicted->messages[i].ready_s);
		end_s = fmax(end_s, p->predicted->messages[i].end_s);
	}
	return fmax(end_s - ready_s, 0);
}

/* Unknown where it cannot be predicted. */
static void find_default(struct job *j)
{
	const struct gf_axes asked = j->axes;
	struct gf_error unread;
	GF_RELEASED(gf_plan_release) struct gf_plan p = {0};

	j->axes.shard_ahead = SIZE_MAX;
	j->axes.shard_keep = 0;
	j->axes.memory.limit_bytes = 0;
	if (plan_units(j, gf_shard_method_has(asked.shard, j->e->overlaps) ? j->e->name : "model",
		       &p, NULL, &unread) == 0) {
		j->t.default_s = p.predicted->iteration_s;
		j->t.default_bytes = p.predicted->memory.peak_bytes;
		j->before_s = j->t.default_s - tail_s(&p);
	}
	j->axes = asked;
}

/* Where the target gathers all parameters before forward, buckets change only what follows
 * backward. */
static void delay_gathers(const struct job *j, struct gf_plan *p)
{
	double more_s = j->before_s + tail_s(p) - p->predicted->iteration_s;

	if (!j->e->gathers_before || has_units(p) || !(j->before_s > 0))
		return;
	p->predicted->iteration_s += more_s;
	p->predicted->exposed_comm_s += more_s;
}

/* The buckets that the target makes of such a size, by its own rule. */
static void cut_as_told(const struct gf_emitter *e, double told, struct gf_plan *p)
{
	struct gf_message *made = NULL;
	size_t n = 0, capacity = 0, of = 0;
	double elems = 0;

	for (size_t i = 0; i < p->model->ntensors; i++) {
		const double next = (double)p->model->tensors[i].count_elems;

		while (p->messages[of].last < i)
			of++;
		if (!n || e->closes(elems, next, told)) {
			gf_record_copy(&gf_message_record, gf_array_push(&made, &n, &capacity),
				       &p->messages[of]);
			made[n - 1].first = i;
			elems = 0;
		}
		made[n - 1].last = i;
		elems += next;
	}
	gf_list_free(&gf_message_record, p->messages, p->nmessages);
	p->messages = made;
	p->nmessages = p->predicted->nmessages = n;
	free(p->predicted->messages);
	p->predicted->messages = gf_xcalloc(n, sizeof(*p->predicted->messages));
}

static int plan_cap(struct job *j, double cap_bytes, struct gf_plan *p, struct gf_text *notes,
		    struct gf_error *err)
{
	char units[32];

	snprintf(units, sizeof(units), "%.0f", cap_bytes);
	return plan_units(j, units, p, notes, err);
}

static int time_cap(void *job, double cap_bytes, double *s, struct gf_error *err)
{
	const struct gf_emitter *e = ((struct job *)job)->e;
	GF_RELEASED(gf_plan_release) struct gf_plan p = {0};
	int rc = plan_cap(job, cap_bytes, &p, NULL, err);

	if (rc)
		return rc;
	if (e->closes) {
		cut_as_told(e, cap_bytes / (double)sizeof(float), &p);
		rc = gf_plan_predict(&p, NULL, err);
	}
	delay_gathers(job, &p);
	*s = p.predicted->iteration_s;
	return rc;
}

/* By the target's own cut of layers, or with the largest cap of buckets that is as good as any. */
static int plan_told(struct job *j, struct gf_plan *p, struct gf_text *notes, struct gf_error *err)
{
	static const int keep_no = 1; /* of --shard keep */
	const char *units = j->axes.shard_units;
	const bool cut = gf_shard_method_has(j->axes.shard, GF_SHARD_PARAMETERS);
	int rc;

	if (cut && !(j->e->takes & GF_EMIT_KEEPS))
		j->axes.shard_keep = keep_no;
	if (cut || units)
		return plan_units(j, units ? units : j->e->shard_units, p, notes, err);
	rc = gf_emit_find_cap(j->r.model, time_cap, j, &j->t, err);
	return rc ?: plan_cap(j, j->t.cap_bytes, p, notes, err);
}

static bool takes_codecs(const struct gf_plan *p, const struct gf_emitter *e)
{
	const char *codec = p->messages[0].codec;

	for (size_t i = 1; i < p->nmessages; i++)
		if (strcmp(p->messages[i].codec, codec) != 0)
			return false;
	return e->takes_codec ? e->takes_codec(codec) : gf_codec_is_plain(codec);
}

/* -ENOTSUP: the plan has what the target does not have. */
static int check_plan(const struct gf_plan *p, const struct gf_emitter *e, struct gf_error *err)
{
	const char *name = gf_shard_plans[method_with(e->shards)]->name;
	GF_RELEASED(gf_text_release) struct gf_text want = {0};

	if (!gf_shard_has(&p->shard, e->shards))
		gf_text_addf(&want, "want --shard %s, got %s", name,
			     gf_shard_plans[p->shard.method]->name);
	else if (p->shard.group_ranks < p->ranks && !(e->takes & GF_EMIT_COPIES))
		gf_text_addf(&want, "want shards across all %d ranks, got %d (leave out across=)",
			     p->ranks, p->shard.group_ranks);
	else if (has_units(p) && e->shard_units && strcmp(p->policy, e->shard_units) != 0)
		gf_text_addf(&want, "want %s's own units (--shard zero3:units=%s), got others",
			     e->program, e->shard_units);
	else if (!takes_codecs(p, e))
		gf_text_addf(&want, "want one codec that %s has, got %s%s", e->program,
			     p->messages[0].codec, p->nmessages > 1 ? ", ..." : "");
	return want.length ? gf_error_set(err, -ENOTSUP, "--emit %s: %s", e->name, want.data) : 0;
}

/* Takes out of the plan what the target cannot be told. -ENOTSUP: then it does not fit; 1: the
 * default is as good, and fits. */
static int settle(struct job *j, struct gf_plan *p, struct gf_error *err)
{
	const double limit = (double)p->memory.limit_bytes;
	int rc = check_plan(p, j->e, err);

	if (rc)
		return rc;
	j->t.doubt = gf_emit_doubt(p);
	if (has_units(p))
		j->e->settle(p);
	else
		cut_as_told(j->e,
			    j->t.cap_bytes > 0 ? j->t.cap_bytes / (double)sizeof(float)
					       : j->e->bucket_elems(p),
			    p);
	rc = gf_plan_predict(p, NULL, err);
	if (rc < 0)
		return rc;
	delay_gathers(j, p);
	j->t.plan_s = p->predicted->iteration_s;
	j->t.plan_bytes = p->predicted->memory.peak_bytes;
	if (limit > 0 && j->t.plan_bytes > limit)
		return gf_error_set(err, -ENOTSUP,
				    "--emit %s: want a plan that fits into %s, found %s: give more "
				    "ranks or a smaller --batch",
				    j->e->name, gf_human_size(limit).text,
				    gf_human_size(j->t.plan_bytes).text);
	if (!gf_emit_pays(&j->t, j->t.plan_s) && !(limit > 0 && j->t.default_bytes > limit))
		return gf_emit_nothing(j->e, j->e->program, &j->t, j->t.plan_s, err);
	return 0;
}

static void add_times(const struct gf_emit_times *t, const char *between, struct gf_text *out)
{
	gf_text_addf(out, ": %s a step, %s at the most%s: %s, %s\n",
		     t->default_s > 0 ? gf_human_time(t->default_s).text : "unknown",
		     gf_human_size(t->default_bytes).text, between, gf_human_time(t->plan_s).text,
		     gf_human_size(t->plan_bytes).text);
}

static int make_plan(struct job *j, const struct gf_plan *given, struct gf_plan *p,
		     struct gf_text *notes, struct gf_error *err)
{
	int rc;

	if (gf_shard_method_has(j->axes.shard, GF_SHARD_OPEN)) {
		rc = gf_request_plan(&j->r, p, NULL, err);
		if (rc)
			return rc;
		gf_axes_take_shard(&j->axes, p->shard.method);
		gf_plan_release(p);
	}
	find_default(j);
	if (!given)
		return plan_told(j, p, notes, err);
	gf_plan_copy(p, given);
	return 0;
}

int gf_emit_by_shards(const struct gf_request *r, const struct gf_plan *given,
		      const struct gf_emitter *e, struct gf_plan *p, struct gf_text *out,
		      struct gf_text *notes, struct gf_error *err)
{
	struct job j = {.e = e, .r = *r};
	int rc;

	if (!r->model || !r->fabric.ranks)
		return gf_error_set(err, -EINVAL, "--emit %s: want a model and ranks, found none",
				    e->name);
	open_job(&j, r, given);
	rc = make_plan(&j, given, p, notes, err);
	if (rc)
		return rc;
	rc = settle(&j, p, err);
	rc = rc ?: e->emit(p, &j.t, out, err);
	if (rc) {
		gf_plan_release(p);
		return rc;
	}
	gf_text_addf(notes, "%s as it is", e->program);
	add_times(&j.t, "; as told", notes);
	return 0;
}

/* --- PyTorch's fully_shard: Python to import ------------------------------- */

/* What PyTorch calls our codecs; NULL: it has none. */
static const char *dtype_of(const char *codec)
{
	static const struct {
		const char *codec, *dtype;
	} dtypes[] = {{"f32", ""}, {"f16", "float16"}, {"bf16", "bfloat16"}};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(dtypes); i++)
		if (strcmp(dtypes[i].codec, codec) == 0)
			return dtypes[i].dtype;
	return NULL;
}

static bool fsdp2_takes(const char *codec)
{
	return dtype_of(codec);
}

/* PyTorch gathers one unit ahead unless it is told of more. */
static void settle_fsdp2(struct gf_plan *p)
{
	p->shard.ahead = p->shard.ahead ? p->shard.ahead : 1;
}

/* The module whose parameters a unit's tensors from `last` down are: the block's, up to its number,
 * where the unit has the whole of it, else the layer's. Returns how much of the name it is; 0: they
 * are the model's own. *first: with which of them it begins. */
static size_t module_length(const struct gf_plan *p, size_t unit, size_t last, size_t *first)
{
	const struct gf_model_profile *m = p->model;
	const char *name = m->tensors[last].name, *dot = strrchr(name, '.');
	const size_t length = dot ? (size_t)(dot - name) : 0;
	size_t block = last, begin, n;

	for (*first = last; !gf_shards_layer_begins(m, *first);)
		--*first;
	while (!gf_shards_block_begins(m, block))
		block--;
	if (block < p->messages[unit].first ||
	    (last + 1 < m->ntensors && !gf_shards_block_begins(m, last + 1)))
		return length;
	for (begin = 0; begin < length; begin += n + 1) {
		n = strcspn(name + begin, ".");
		if (n && strspn(name + begin, "0123456789") == n) {
			*first = block;
			return begin + n;
		}
	}
	return length;
}

static void quote_part(struct gf_text *out, const char *name, size_t length)
{
	GF_FREED char *part = gf_xasprintf("%.*s", (int)length, name);

	gf_json_quote(out, part);
}

/* Modules in the order of forward, a list per unit. -ENOTSUP: two units have parts of one. */
static int add_units(const struct gf_plan *p, struct gf_text *out, struct gf_error *err)
{
	size_t unit = p->nmessages, length = 0, now, k;
	const char *module = "", *name;

	while (unit-- > 0) {
		const struct gf_message *u = &p->messages[unit];
		const char *before = "    ([";

		for (k = u->last + 1; k-- > u->first;) {
			name = p->model->tensors[k].name;
			now = module_length(p, unit, k, &k);
			if (!now)
				continue;
			if (*before == ' ' && now == length && !strncmp(name, module, now))
				return gf_error_set(
					err, -ENOTSUP,
					"--emit fsdp2: want units of whole modules, got a cut "
					"through %.*s (--shard zero3:units=layer)",
					(int)now, name);
			gf_text_addf(out, "%s", before);
			quote_part(out, name, now);
			before = ", ";
			module = name;
			length = now;
		}
		if (*before == ',')
			gf_text_addf(out, "], %s),\n", stays(p, unit) ? "True" : "False");
	}
	if (length)
		return 0;
	return gf_error_set(err, -ENOTSUP,
			    "--emit fsdp2: want tensors that are called as PyTorch does "
			    "(h.0.attn.weight), got %s: give a profile of the model there "
			    "(gradflow.measure)",
			    p->model->tensors[0].name);
}

/* Both halves go in the codec. PyTorch gathers one unit ahead by itself. */
static void add_function(const struct gf_plan *p, struct gf_text *out)
{
	const char *dtype = dtype_of(p->messages[0].codec);

	gf_text_addf(
		out,
		"]\n\n\n"
		"def uses(module):  # how many modules have each parameter\n"
		"    return Counter(p for m in module.modules() for p in m.parameters(False))\n\n\n"
		"def shard(model):\n"
		"    \"\"\"shard(model), then the optimizer of its parameters\"\"\"\n"
		"    options = {}\n");
	if (dtype[0])
		gf_text_addf(out,
			     "    options[\"mp_policy\"] = MixedPrecisionPolicy(\n"
			     "        param_dtype=torch.%s, reduce_dtype=torch.%s)\n",
			     dtype, dtype);
	if (p->shard.group_ranks < p->ranks)
		gf_text_addf(
			out,
			"    options[\"mesh\"] = init_device_mesh(\n"
			"        \"cuda\" if torch.cuda.is_available() else \"cpu\", (%d, %d),\n"
			"        mesh_dim_names=(\"replicate\", \"shard\"))\n",
			p->ranks / p->shard.group_ranks, p->shard.group_ranks);
	gf_text_addf(out, "    # modules that share a parameter with others (tied weights) are "
			  "left to the root\n"
			  "    everywhere = uses(model).items()\n"
			  "    alone = [(own, keep) for names, keep in units if (own := [\n"
			  "        n for n in names if uses(model.get_submodule(n)).items() <= "
			  "everywhere])]\n"
			  "    rest = list(alone)\n"
			  "    while rest:  # inner modules first, the root last\n"
			  "        names, keep = unit = next(u for u in rest if not any(\n"
			  "            n.startswith(m + \".\") for m in u[0]\n"
			  "            for v in rest if v is not u for n in v[0]))\n"
			  "        rest.remove(unit)\n"
			  "        fully_shard([model.get_submodule(n) for n in names],\n"
			  "                    reshard_after_forward=not keep, **options)\n"
			  "    fully_shard(model, reshard_after_forward=False, **options)\n");
	if (p->shard.ahead > 1)
		gf_text_addf(out,
			     "    order = [model.get_submodule(names[0]) for names, _ in alone]\n"
			     "    for i, unit in enumerate(order):\n"
			     "        unit.set_modules_to_forward_prefetch(order[i + 1:i + %zu])\n"
			     "        unit.set_modules_to_backward_prefetch(order[:i][:-%zu:-1])\n",
			     p->shard.ahead + 1, p->shard.ahead + 1);
}

static int emit_fsdp2(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
		      struct gf_error *err)
{
	int rc;

	gf_emit_head(p, "units for torch.distributed.fsdp.fully_shard", out);
	gf_text_addf(out, "# a unit per block, as by default");
	add_times(t, "\n# these units", out);
	gf_text_addf(out, "from collections import Counter\n\n"
			  "import torch\n"
			  "from torch.distributed.device_mesh import init_device_mesh\n"
			  "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard\n\n"
			  "# in the order of forward: modules, and whether they stay gathered\n"
			  "units = [\n");
	rc = add_units(p, out, err);
	add_function(p, out);
	return rc;
}

/* MANUAL
 * PyTorch's fully_shard (FSDP2): the modules of each unit, as Python.
 * Units that a plan keeps are not resharded after forward. */
const struct gf_emitter gf_emitter_fsdp2 = {
	.name = "fsdp2",
	.description = "PyTorch's fully_shard, Python",
	.place = 15,
	.version = "PyTorch 2.15",
	.takes = GF_EMIT_SHARDS | GF_EMIT_CODECS | GF_EMIT_KEEPS | GF_EMIT_COPIES,
	.program = "fully_shard",
	.takes_codec = fsdp2_takes,
	.shards = GF_SHARD_PARAMETERS,
	.overlaps = GF_SHARD_PARAMETERS,
	.settle = settle_fsdp2,
	.emit = emit_fsdp2,
};

/* --- DeepSpeed: a part of its JSON ----------------------------------------- */

/* Elements of the units whose second use is the soonest; *small: of the largest of the other kept
 * ones that are smaller than all that are given back. */
static double reused_elems(const struct gf_plan *p, double *small)
{
	double kept = 0, given_back = INFINITY;
	size_t n = 0, i;

	for (; n < p->nmessages && stays(p, n); n++)
		kept += elems_of(p, n);
	for (i = n; i < p->nmessages; i++)
		if (!stays(p, i))
			given_back = fmin(given_back, elems_of(p, i));
	for (*small = 0, i = n; i < p->nmessages; i++)
		if (stays(p, i) && elems_of(p, i) < given_back)
			*small = fmax(*small, elems_of(p, i));
	return kept;
}

static void settle_deepspeed(struct gf_plan *p)
{
	double small, kept = reused_elems(p, &small), sum = 0;

	for (size_t i = 0; i < p->nmessages; i++) {
		sum += elems_of(p, i);
		p->messages[i].keep = sum <= kept || elems_of(p, i) <= small;
	}
}

static double largest_elems(const struct gf_plan *p)
{
	double most = 0;

	for (size_t i = 0; i < p->nmessages; i++)
		most = fmax(most, elems_of(p, i));
	return most;
}

/* A tensor that is larger goes by itself. */
static double joined_elems(const struct gf_plan *p)
{
	double most = 0, least = INFINITY;

	for (size_t i = 0; i < p->nmessages; i++) {
		least = fmin(least, elems_of(p, i));
		if (p->messages[i].first < p->messages[i].last)
			most = fmax(most, elems_of(p, i));
	}
	return most > 0 ? most : least;
}

static bool closes_deepspeed(double elems, double next, double told)
{
	return elems + next > told;
}

/*
 * Stages 1 and 2 reduce a bucket before the next gradient would make it larger than
 * reduce_bucket_size elements. By default they all-reduce it; without
 * use_multi_rank_bucket_allreduce its parts are reduced to their owners alone, which costs what a
 * reduce-scatter does (runtime/zero/stage_1_and_2.py). overlap_comm is false by default but for
 * stage 3 (runtime/zero/config.py).
 *
 * Stage 3 (runtime/zero/partitioned_param_coordinator.py) fetches ahead until it has so many
 * elements, and keeps a parameter that is used again before max_reuse_distance elements have been
 * passed: those of the units up to it, twice. max_live_parameters is to limit neither.
 */
static int emit_deepspeed(const struct gf_plan *p, const struct gf_emit_times *t,
			  struct gf_text *out, struct gf_error *err)
{
	const int stage = 1 + gf_shard_has(&p->shard, GF_SHARD_GRADIENTS) + has_units(p);
	double small, kept = reused_elems(p, &small), most = largest_elems(p);
	const double told = has_units(p) ? most : joined_elems(p);

	(void)t;
	(void)err;
	gf_text_addf(out,
		     "{\n"
		     "  \"zero_optimization\": {\n"
		     "    \"stage\": %d,\n"
		     "    \"overlap_comm\": true,\n"
		     "    \"reduce_bucket_size\": %.0f",
		     stage, told);
	if (has_units(p))
		gf_text_addf(out,
			     ",\n    \"stage3_prefetch_bucket_size\": %.0f,\n"
			     "    \"stage3_param_persistence_threshold\": %.0f,\n"
			     "    \"stage3_max_reuse_distance\": %.0f,\n"
			     "    \"stage3_max_live_parameters\": %.0f",
			     ahead_elems(p), small, 2 * kept,
			     fmin(all_elems(p), kept + most * (double)(p->shard.ahead + 1)));
	else
		gf_text_addf(out,
			     ",\n    \"allgather_bucket_size\": %.0f,\n"
			     "    \"use_multi_rank_bucket_allreduce\": false",
			     all_elems(p));
	gf_text_addf(out, "\n  }\n}\n");
	return 0;
}

/* MANUAL
 * DeepSpeed's ZeRO 1, 2 and 3: a part of its JSON.
 * Stage 1 stands where
 * .Fl -shard
 * names none. */
const struct gf_emitter gf_emitter_deepspeed = {
	.name = "deepspeed",
	.description = "DeepSpeed's ZeRO, a part of its JSON",
	.place = 90,
	.version = "DeepSpeed 1b88ac36",
	.takes = GF_EMIT_SHARDS | GF_EMIT_CAP | GF_EMIT_KEEPS,
	.program = "DeepSpeed",
	.shards = GF_SHARD_STATE,
	.shard_units = "layer",
	.overlaps = GF_SHARD_PARAMETERS,
	.gathers_before = true,
	.settle = settle_deepspeed,
	.bucket_elems = joined_elems,
	.closes = closes_deepspeed,
	.emit = emit_deepspeed,
};

/* --- Megatron-LM: arguments of a script ------------------------------------ */

static void settle_megatron(struct gf_plan *p)
{
	for (size_t i = 0; i < p->nmessages; i++)
		p->messages[i].keep = false;
}

/* A bucket is full once it has ddp-bucket-size elements: as many as the smallest that was filled.
 * The last one has what is left. */
static double full_elems(const struct gf_plan *p)
{
	double least = INFINITY;

	for (size_t i = 0; i + 1 < p->nmessages; i++)
		least = fmin(least, elems_of(p, i));
	return fmin(least, all_elems(p));
}

static bool closes_megatron(double elems, double next, double told)
{
	(void)next;
	return elems >= told;
}

/*
 * The distributed optimizer reduce-scatters buckets
 * (core/distributed/distributed_data_parallel.py). Megatron-FSDP shards gradients and parameters,
 * too; it gathers units ahead until they have half the elements of a communication unit
 * (core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py).
 */
static int emit_megatron(const struct gf_plan *p, const struct gf_emit_times *t,
			 struct gf_text *out, struct gf_error *err)
{
	(void)t;
	(void)err;
	gf_text_addf(out, "--use-distributed-optimizer --overlap-grad-reduce "
			  "--overlap-param-gather");
	if (gf_shard_has(&p->shard, GF_SHARD_GRADIENTS))
		gf_text_addf(out,
			     " --use-megatron-fsdp --data-parallel-sharding-strategy %s "
			     "--ckpt-format fsdp_dtensor",
			     has_units(p) ? "optim_grads_params" : "optim_grads");
	if (has_units(p))
		gf_text_addf(out, " --suggested-communication-unit-size %.0f",
			     fmax(1, 2 * ahead_elems(p)));
	else
		gf_text_addf(out, " --ddp-bucket-size %.0f", full_elems(p));
	if (p->shard.group_ranks < p->ranks)
		gf_text_addf(out, " --num-distributed-optimizer-instances %d",
			     p->ranks / p->shard.group_ranks);
	gf_text_addf(out, "\n");
	return 0;
}

/* MANUAL
 * Megatron-LM: arguments of its distributed optimizer (zero1, which stands where
 * .Fl -shard
 * names nothing) and of Megatron-FSDP (zero2, zero3) */
const struct gf_emitter gf_emitter_megatron = {
	.name = "megatron",
	.description = "Megatron-LM, arguments",
	.place = 100,
	.version = "Megatron-LM 00119989",
	.takes = GF_EMIT_SHARDS | GF_EMIT_CAP | GF_EMIT_COPIES,
	.program = "Megatron-LM",
	.shards = GF_SHARD_STATE,
	.shard_units = "block",
	.overlaps = GF_SHARD_GRADIENTS,
	.settle = settle_megatron,
	.bucket_elems = full_elems,
	.closes = closes_megatron,
	.emit = emit_megatron,
};
