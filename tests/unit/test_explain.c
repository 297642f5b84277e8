/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --explain and the prediction of a plan say the same: every printed time is the plan's, and every
 * alternative is what that other plan is predicted to take.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/human.h"
#include "planner/policies/policy.h"
#include "planner/summary.h"
#include "planner_cases.h"
#include "selections.h"
#include "simulator/predict.h"
#include "test.h"

/* Of the basic policies, and one of each whose file says "explains LANES". */
static struct explained {
	const char *policy, *selection; /* as test_selection has it */
	int staleness, lanes;
} cases[64] = {
	{"optimal", "plain", 1, 1},    {"optimal", "plain", 1, 2}, {"optimal", "plain", 2, 2},
	{"optimal", "gathered", 1, 1}, {"wfbp", "plain", 2, 1},    {"single", "gathered", 1, 1},
};
static size_t ncases;

static void add_policies(void)
{
	size_t i;
	int lanes;

	while (cases[ncases].policy)
		ncases++;
	for (i = 0; gf_policies[i]; i++) {
		char *text = entry_lines("policy", gf_policies[i]->name);
		const char *at = strstr(text, "explains ");

		if (at && sscanf(at, "explains %d", &lanes) == 1)
			cases[ncases++] =
				(struct explained){gf_policies[i]->name, "plain", 1, lanes};
		free(text);
	}
}

/* Does text begin with the line, however its columns are padded? */
static bool same_words(const char *text, const char *line)
{
	for (; *line; line++) {
		if (*line != '\n')
			text += strspn(text, " ");
		if (*line != ' ' && *text++ != *line)
			return false;
	}
	return true;
}

/* The table's row of each message ends with its three times. */
static void check_times(const char *text, const struct gf_plan *p, const char *what)
{
	const char *line = strstr(text, "\nmessage ");
	size_t i;

	EXPECT(line != NULL, "%s: no table", what);
	for (i = 0; line && i < p->nmessages; i++) {
		const struct gf_predicted_message *m = &p->predicted->messages[i];
		char want[112], mode[32];
		int times = 0;

		line = strchr(line + 1, '\n');
		snprintf(want, sizeof(want), "%s %s %s\n", gf_human_time(m->ready_s).text,
			 gf_human_time(m->start_s).text, gf_human_time(m->end_s).text);
		EXPECT(line && sscanf(line, "%*s %*s %*s %*s %*s %*s %31s %n", mode, &times) == 1,
		       "%s: message %zu", what, i);
		EXPECT_TEXT(mode, gf_mode_names[p->messages[i].mode]);
		EXPECT(line && same_words(line + times, want), "%s: message %zu: want %sgot %.60s",
		       what, i, want, line + times);
	}
}

/* The cheapest measured algorithm for a message of that size, by its own. */
static void choose(const struct gf_plan *p, struct gf_message *m)
{
	struct gf_fabric fabric = gf_plan_fabric(p);
	size_t k, bytes = 0, i, best = 0;
	double least = INFINITY;

	for (i = m->first; i <= m->last; i++)
		bytes += gf_tensor_bytes(&p->model->tensors[i]);
	for (k = 0; k < p->network->nallreduce; k++) {
		struct gf_priced way = {p->network->allreduce[k].algorithm, NULL, 0, (double)bytes};
		struct gf_price price;
		double cost;

		if (gf_price_message(&fabric, &way, &price, NULL) < 0)
			continue;
		cost = gf_line_s(&price.line, (double)bytes);
		if (cost < least) {
			least = cost;
			best = k;
		}
	}
	free(m->algorithm);
	m->algorithm = gf_xstrdup(p->network->allreduce[best].algorithm);
}

/* The predicted iteration if message i is cut after tensor t. */
static double cut_s(const struct gf_plan *p, size_t i, size_t t)
{
	struct gf_fabric fabric;
	struct gf_sim_result result = {0};
	struct gf_error err = {""};
	struct gf_message *m;
	struct gf_plan cut;
	int rc;

	gf_plan_copy(&cut, p);
	m = gf_xcalloc(p->nmessages + 1, sizeof(*m));
	memcpy(m, cut.messages, (i + 1) * sizeof(*m));
	memcpy(m + i + 1, cut.messages + i, (p->nmessages - i) * sizeof(*m));
	m[i + 1].algorithm = gf_xstrdup(m[i].algorithm);
	m[i + 1].codec = gf_xstrdup(m[i].codec);
	m[i].last = t;
	m[i + 1].first = t + 1;
	free(cut.messages);
	cut.messages = m;
	choose(p, &m[i]);
	choose(p, &m[i + 1]);
	/* the copied prediction has a message less */
	free(cut.predicted->messages);
	cut.predicted->messages = gf_xcalloc(++cut.nmessages, sizeof(*cut.predicted->messages));
	fabric = gf_plan_fabric(&cut);
	rc = gf_predict_plan(&cut, &fabric, &result, &err);
	EXPECT(rc == 0, "%s", err.text);
	gf_plan_release(&cut);
	return result.iteration_s;
}

static bool same(double now, double other)
{
	return fabs(other - now) <= 1e-9 * now;
}

static size_t check_cuts(const char *text, const struct gf_plan *p, const char *what)
{
	size_t i, t, checked = 0;

	for (i = 0; i < p->nmessages; i++)
		for (t = p->messages[i].first; t < p->messages[i].last; t++) {
			char begin[64], want[128];
			double other = cut_s(p, i, t);
			double now = p->predicted->iteration_s;
			const char *line;

			snprintf(begin, sizeof(begin), "\n%zu t: message %zu", t, i);
			line = strstr(text, begin);
			if (!line || !strstr(line, "if cut here"))
				continue; /* a rule is quoted */
			snprintf(want, sizeof(want), "%s, merged: %s%s if cut here\n", begin,
				 same(now, other) ? "as fast"
						  : gf_human_time(fabs(other - now)).text,
				 same(now, other) ? ""
				 : other > now    ? " slower"
						  : " faster");
			EXPECT(strncmp(line, want, strlen(want)) == 0, "%s: want%s got%.80s", what,
			       want, line);
			checked++;
		}
	return checked;
}

static size_t check_case(size_t c, uint64_t seed)
{
	struct problem_store s;
	struct gf_axes axes;
	struct gf_request r = {.policy = cases[c].policy,
			       .lanes = cases[c].lanes,
			       .fabric.ranks = 4,
			       .axes = &axes};
	struct gf_text notes = {0}, out = {0};
	struct gf_error err = {""};
	struct gf_plan p;
	const struct gf_selection selection = test_selection(cases[c].selection);
	const struct gf_select_plan *plan = gf_selection_plan(&selection);
	size_t checked = 0;
	char what[64];
	int rc;

	snprintf(what, sizeof(what), "case %zu seed %d", c, (int)seed);
	store_lines(&s, seed, 8, cases[c].lanes);
	if (s.network.nallreduce > 1)
		s.network.nallreduce = 2; /* ring, and one that goes alone */
	gf_axes_init(&axes);
	axes.selection = 0;
	axes.staleness = cases[c].staleness > 1 ? cases[c].staleness : 0;
	while (gf_select_plans[axes.selection] != plan)
		axes.selection++;
	r.model = &s.model;
	r.fabric.network = &s.network;
	if (gf_policy_find(cases[c].policy)->halves)
		s.network.nallreduce = 1;
	rc = gf_request_plan(&r, &p, &notes, &err);
	EXPECT(rc == 0, "%s: %s", what, err.text);
	if (rc == 0) {
		rc = gf_plan_explain(&r, &p, 0, &out, &err);
		EXPECT(rc == 0, "%s: %s", what, err.text);
		check_times(out.data, &p, what);
		checked = check_cuts(out.data, &p, what);
		gf_plan_release(&p);
	}
	gf_text_release(&out);
	gf_text_release(&notes);
	gf_axes_release(&axes);
	return checked;
}

int main(void)
{
	size_t c, checked = 0;
	uint64_t seed;

	add_policies();
	for (c = 0; c < ncases; c++)
		for (seed = 1; seed <= 20; seed++)
			checked += check_case(c, seed);
	EXPECT(checked > 100 || entries_are_few(), "only %zu alternatives", checked);
	return TEST_END();
}
