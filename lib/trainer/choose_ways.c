/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/choose_ways.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/units.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/set.h"
#include "collectives/codecs/codec.h"
#include "collectives/runnable.h"
#include "profiler/autotune/chooser.h"
#include "documents/plan_rule.h"
#include "checkpoints/run/snapshot.h"

bool gf_train_is_open(const struct gf_plan *plan)
{
	for (size_t i = 0; i < plan->nmessages; i++)
		if (gf_message_is_open(&plan->messages[i]))
			return true;
	return false;
}

/* --- as a text ------------------------------------------------------------ */

static void add_way(const struct gf_message *m, struct gf_text *out)
{
	gf_text_addf(out, "%s", out->length ? ";" : "");
	gf_stages_text_of(out, m->algorithm, m->stages, m->nstages);
}

char *gf_train_ways(const struct gf_plan *plan)
{
	struct gf_text out = {0};

	for (size_t i = 0; i < plan->nmessages; i++)
		add_way(&plan->messages[i], &out);
	return gf_text_take(&out);
}

static bool same_way(const struct gf_message *a, const struct gf_message *b)
{
	GF_RELEASED(gf_text_release) struct gf_text x = {0}, y = {0};

	add_way(a, &x);
	add_way(b, &y);
	return strcmp(x.data, y.data) == 0;
}

char *gf_train_ways_once(const struct gf_plan *plan)
{
	struct gf_text out = {0};
	size_t i, k;

	for (i = 0; i < plan->nmessages; i++) {
		const struct gf_message *m = &plan->messages[i];
		const char *runs = gf_plan_runs(plan, m->first, m->last, m);

		/* the sets of a selection go by one algorithm of their own */
		if (runs != m->algorithm) {
			if (i == 0)
				gf_text_addf(&out, "%s", runs);
			continue;
		}
		for (k = 0; k < i; k++)
			if (same_way(&plan->messages[k], m))
				break;
		if (k == i)
			add_way(m, &out);
	}
	return gf_text_take(&out);
}

static void clear_way(struct gf_message *m)
{
	gf_stages_free(m->stages, m->nstages);
	free(m->algorithm);
	m->stages = NULL;
	m->nstages = 0;
}

static int take_stage(struct gf_message *m, size_t *capacity, char *word, struct gf_error *err)
{
	char *name = strchr(word, ':');
	struct gf_stage *stage;
	long long factor;
	int rc;

	if (!name)
		return gf_error_set(err, -EINVAL, "want a stage such as 4:ring, got \"%s\"", word);
	*name++ = '\0';
	rc = gf_units_int(word, 2, INT_MAX, &factor, err);
	if (rc)
		return rc;
	stage = gf_array_push(&m->stages, &m->nstages, capacity);
	stage->factor = (int)factor;
	stage->algorithm = gf_xstrdup(name);
	return 0;
}

static int take_way(struct gf_message *m, char *text, struct gf_error *err)
{
	char *word = strsep(&text, " ");
	size_t capacity = 0;
	int rc = 0;

	clear_way(m);
	m->algorithm = gf_xstrdup(word);
	while (!rc && (word = strsep(&text, " ")))
		rc = take_stage(m, &capacity, word, err);
	return rc;
}

int gf_train_take_ways(struct gf_plan *plan, const char *ways, struct gf_error *err)
{
	char *copy = gf_xstrdup(ways), *rest = copy, *one;
	size_t n = 0;
	int rc = 0;

	while (!rc && (one = strsep(&rest, ";"))) {
		if (n < plan->nmessages && gf_message_is_open(&plan->messages[n]))
			rc = take_way(&plan->messages[n], one, err);
		n++;
	}
	if (!rc && n != plan->nmessages)
		rc = gf_error_set(err, -EINVAL,
				  "was written with %zu messages, the plan makes %zu of this run",
				  n, plan->nmessages);
	free(copy);
	/* stages are of the plan's ranks, types agree: what a reader checks */
	return rc ?: gf_plan_check(plan, err);
}

void gf_train_put_ways(struct gf_plan *plan, const char *ways)
{
	char *copy = gf_xstrdup(ways), *rest = copy;
	int rc;

	for (size_t i = 0; i < plan->nmessages; i++) {
		char *one = strsep(&rest, ";");

		rc = one ? take_way(&plan->messages[i], one, NULL) : -EINVAL;
		assert(!rc);
		(void)rc;
	}
	free(copy);
}

/* --- of the run before ---------------------------------------------------- */

int gf_train_stored_ways(struct gf_team *team, const struct gf_folder *folder, char **ways,
			 struct gf_error *err)
{
	struct gf_safetensors s = {0};
	size_t bytes;
	int rc = 0;

	*ways = NULL;
	if (team->comm->rank == 0 && folder->from.ranks == team->comm->ranks) {
		rc = gf_checkpoint_open_part(folder->dir, folder->from.step, 0, &s, err);
		if (!rc && gf_safetensors_has_metadata(&s, GF_TRAIN_WAYS))
			rc = gf_safetensors_metadata(&s, GF_TRAIN_WAYS, ways, err);
		gf_safetensors_close(&s);
	}
	rc = gf_team_agree(team, rc, err);
	bytes = *ways ? strlen(*ways) + 1 : 0;
	rc = rc ?: gf_team_bcast(team, &bytes, sizeof(bytes), err);
	if (!rc && bytes && !*ways)
		*ways = gf_xmalloc(bytes);
	return rc || !bytes ? rc : gf_team_bcast(team, *ways, bytes, err);
}

static int take_stored(const struct gf_train_config *k, struct gf_plan *plan, struct gf_error *err)
{
	struct gf_team team = {.comm = k->comm};
	GF_FREED char *ways = NULL;
	int rc = gf_train_stored_ways(&team, k->folder, &ways, err);

	if (!rc && ways) {
		rc = gf_train_take_ways(plan, ways, err);
		if (rc)
			gf_error_prefix(err, "%s", k->checkpoint);
	}
	return rc;
}

/* --- measured ------------------------------------------------------------- */

static size_t largest_open(const struct gf_plan *plan)
{
	size_t i, most = 1;

	for (i = 0; i < plan->nmessages; i++) {
		size_t n = gf_plan_message_elems(plan, i);

		if (gf_message_is_open(&plan->messages[i]) && n > most)
			most = n;
	}
	return most;
}

/* Those of one codec; a size is measured once. */
static int choose_coded(struct gf_chooser_config *c, struct gf_plan *plan, const char *codec,
			void *data, struct gf_error *err)
{
	GF_FREED char *name = gf_xstrdup(codec);
	struct gf_chooser *chooser = NULL;
	struct gf_way way;
	int rc = gf_element_coded(name, GF_OP_SUM, &c->element, err);

	rc = rc ?: gf_chooser_new(c, &chooser, err);
	for (size_t i = 0; !rc && i < plan->nmessages; i++) {
		struct gf_message *m = &plan->messages[i];

		if (!gf_message_is_open(m) || strcmp(m->codec, name))
			continue;
		rc = gf_chooser_pick(chooser, gf_plan_message_elems(plan, i), data, &way, err);
		if (rc) {
			gf_error_prefix(err, "message %zu", i);
			break;
		}
		clear_way(m);
		m->algorithm = gf_xstrdup(way.algorithm->name);
		m->nstages = gf_choose_stages(&way, &m->stages);
	}
	gf_chooser_free(chooser);
	return rc;
}

static int measure(const struct gf_train_config *k, struct gf_plan *plan, struct gf_error *err)
{
	struct gf_comm *comm = k->comm;
	struct gf_watch watch;
	struct gf_chooser_config c = {
		.comm = comm,
		.watch = &watch,
		.half = k->halves || gf_shard_is_used(&plan->shard) ? GF_COLL_REDUCE_SCATTER
								    : GF_COLL_WHOLE,
		.lanes = plan->lanes,
		.segment_bytes = plan->segment_bytes,
		.same_bits = true,
		.reproducible = plan->reproducible,
	};
	size_t elems = largest_open(plan), i;
	void *data = NULL;
	int rc;

	rc = comm->ops->buffer_alloc(comm, elems * sizeof(float) * (size_t)plan->lanes, &data, err);
	rc = gf_comm_agree(comm, rc, err);
	if (rc)
		return rc;
	gf_watch_init(&watch, comm, k->timeout_s);
	watch.self.phase = GF_PHASE_CALL;
	for (i = 0; !rc && i < plan->nmessages; i++)
		if (gf_message_is_open(&plan->messages[i]))
			rc = choose_coded(&c, plan, plan->messages[i].codec, data, err);
	if (rc && rc != -EINVAL && rc != -ENOTSUP && rc != -ENOMEM)
		gf_watch_leave(&watch, rc, err);
	gf_watch_release(&watch);
	comm->ops->buffer_free(comm, data);
	return rc;
}

static void use(struct gf_plan *plan, bool open_only, const char *plain)
{
	for (size_t i = 0; i < plan->nmessages; i++) {
		struct gf_message *m = &plan->messages[i];

		if (open_only && !gf_message_is_open(m))
			continue;
		free(m->algorithm);
		m->algorithm = gf_xstrdup(
			gf_codec_is_plain(m->codec) && m->half == GF_HALF_ALL ? plain : "ring");
	}
}

void gf_train_use_library(struct gf_plan *plan, bool open_only)
{
	use(plan, open_only, "library");
}

int gf_train_choose(struct gf_train_config *config, struct gf_plan *plan, struct gf_error *err)
{
	double began_s;
	int rc = 0;

	if (gf_train_is_open(plan) && config->resume)
		rc = take_stored(config, plan, err);
	if (config->place.nccl) {
		gf_train_use_library(plan, true);
		gf_plan_use_calls(plan);
	}
	/* sets go by an algorithm of their own, whatever is chosen */
	if (gf_selection_has(&plan->selection, GF_SELECT_SETS))
		use(plan, true, "ring");
	if (!rc && gf_train_is_open(plan)) {
		began_s = gf_clock_s();
		rc = measure(config, plan, err);
		config->choose_s = gf_clock_s() - began_s;
	}
	return rc ?: gf_plan_runnable(plan, err);
}
