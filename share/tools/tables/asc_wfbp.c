/* SPDX-License-Identifier: BSD-3-Clause */
/* ASC-WFBP (Shi, Chu, Li 2021): Tables III, IV and V. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "asc_printed.h"
#include "base/array.h"
#include "base/heap.h"
#include "planner/policies.h"
#include "report.h"
#include "setup.h"

static const struct {
	const char *name, *file;
} models[] = {
	{"ResNet-152", "resnet152"},
	{"DenseNet-201", "densenet201"},
	{"Inception-v4", "inception-v4"},
	{"BERT-Base", "bert-base"},
};
#define MODELS GF_ARRAY_LENGTH(models)

enum scheme {
	WFBP,
	MG_WFBP,
	MG_EVEN,
	ASC_LITERAL,
	ASC_PRINTED,
	ASC_CAPPED,
	OPTIMAL,
	SCHEMES
};
static const struct {
	const char *name, *column;
	const struct gf_policy *policy;
	int lanes;
	bool even, capped; /* layer times, contention */
} schemes[SCHEMES] = {
	[WFBP] = {"WFBP", "wfbp", &gf_policy_wfbp, 1, false, false},
	[MG_WFBP] = {"MG-WFBP", "mg-wfbp", &gf_policy_mg_wfbp, 1, false, false},
	[MG_EVEN] = {"MG-WFBP, even layers", "mg-wfbp", &gf_policy_mg_wfbp, 1,
		     true, false},
	[ASC_LITERAL] = {"ASC-WFBP, Algorithm 1", "asc-wfbp",
			 &gf_policy_asc_printed, 2, false, false},
	[ASC_PRINTED] = {"ASC-WFBP", "asc-wfbp", &gf_policy_asc_wfbp, 2, false,
			 false},
	[ASC_CAPPED] = {"ASC-WFBP, gamma <= link", "asc-wfbp",
			&gf_policy_asc_wfbp, 2, false, true},
	[OPTIMAL] = {"optimal, gamma <= link", NULL, &gf_policy_optimal, 2,
		     false, true},
};

struct study {
	struct gf_paper paper;
	double startup_s, per_byte_s, gamma, link_s_per_byte;
	int ranks;
	struct gf_network *printed, *capped;
	struct gf_model_profile *model[MODELS], *even[MODELS];
	struct gf_setup_result result[MODELS][SCHEMES];
};

/* --- inputs --------------------------------------------------------------- */

static void one_gamma(struct gf_contention_entry *e, size_t size_bytes,
		      double gamma_2)
{
	e->size_bytes = size_bytes;
	e->ngamma = 2;
	e->gamma = gf_xcalloc(2, sizeof(*e->gamma));
	e->gamma[0] = 1;
	e->gamma[1] = gamma_2;
}

/*
 * Two messages of m bytes take a + gamma b m together. They cannot move faster
 * than the link: that is at least 2 m b_link, with b_link = 2/B (Eq. 43).
 */
static double capped_gamma(const struct study *s, double bytes)
{
	double least = (2 * bytes * s->link_s_per_byte - s->startup_s) /
		       (s->per_byte_s * bytes);

	return fmax(s->gamma, least);
}

static void make_networks(struct study *s)
{
	const size_t first = 16, count = 12; /* 64 KiB to 128 MiB */
	struct gf_contention *c;
	size_t i;

	s->printed = gf_setup_network(s->ranks, s->startup_s, s->per_byte_s);
	c = &s->printed->allreduce[0].contention;
	c->entries = gf_xcalloc(1, sizeof(*c->entries));
	c->nentries = 1;
	one_gamma(&c->entries[0], 0, s->gamma);

	s->capped = gf_setup_network(s->ranks, s->startup_s, s->per_byte_s);
	c = &s->capped->allreduce[0].contention;
	c->entries = gf_xcalloc(count, sizeof(*c->entries));
	c->nentries = count;
	for (i = 0; i < count; i++) {
		size_t bytes = (size_t)1 << (first + i);

		one_gamma(&c->entries[i], bytes,
			  capped_gamma(s, (double)bytes));
	}
}

static struct gf_setup_times times_of(struct study *s, size_t i)
{
	struct gf_paper *p = &s->paper;

	if (i == 0)
		return (struct gf_setup_times){
			gf_paper_input(p, "resnet152_forward_s"),
			gf_paper_input(p, "resnet152_backward_s"), false};
	/* Table V: S = P (t_f + t_b) / t */
	return gf_setup_split(
		gf_paper_value(p, "Table V", models[i].name, "S") *
		gf_paper_value(p, "Table IV", models[i].name, "asc-wfbp") /
		s->ranks);
}

static int prepare(struct study *s, struct gf_error *err)
{
	struct gf_paper *p = &s->paper;
	size_t i, k;
	int rc = 0;

	s->ranks = (int)gf_paper_input(p, "ranks");
	s->startup_s = gf_paper_input(p, "startup_s");
	s->per_byte_s = gf_paper_input(p, "per_byte_s");
	s->gamma = gf_paper_input(p, "gamma_2");
	s->link_s_per_byte = 2 * 8 / gf_paper_input(p, "link_bits_per_s");
	make_networks(s);
	for (i = 0; i < MODELS && !rc; i++) {
		struct gf_setup_times t = times_of(s, i);

		rc = gf_paper_check(p, err);
		if (!rc)
			rc = gf_setup_model(models[i].file, &t, GF_F32,
					    &s->model[i], err);
		t.even = true;
		if (!rc)
			rc = gf_setup_model(models[i].file, &t, GF_F32,
					    &s->even[i], err);
		for (k = 0; k < SCHEMES && !rc; k++)
			rc = gf_setup_predict(
				schemes[k].even ? s->even[i] : s->model[i],
				schemes[k].capped ? s->capped : s->printed,
				schemes[k].policy, schemes[k].lanes,
				&s->result[i][k], err);
	}
	return rc;
}

/* --- tables --------------------------------------------------------------- */

static double megabytes(const struct gf_model_profile *m)
{
	return (double)gf_model_profile_bytes(m) / 1e6;
}

static void table_iii(struct gf_report *r, struct study *s)
{
	char name[64];
	size_t i;

	gf_report_open(r, "ASC-WFBP Table III",
		       "parameters (millions) and gradient tensors");
	for (i = 0; i < MODELS; i++) {
		snprintf(name, sizeof(name), "%s, parameters", models[i].name);
		gf_report_row(r, name,
			      gf_paper_value(&s->paper, "Table III",
					     models[i].name,
					     "parameters_millions"),
			      megabytes(s->model[i]) / 4, 1);
		snprintf(name, sizeof(name), "%s, tensors", models[i].name);
		gf_report_row(r, name,
			      gf_paper_value(&s->paper, "Table III",
					     models[i].name, "tensors"),
			      (double)s->model[i]->ntensors, 0);
	}
	gf_report_close(r);
	gf_report_say(r, "Generated from the architectures in share/models.");
}

static void table_iv(struct gf_report *r, struct study *s)
{
	char name[64];
	size_t i, k;

	gf_report_open(r, "ASC-WFBP Table IV",
		       "seconds per iteration, 32 GPUs, 10 Gb/s Ethernet");
	for (i = 0; i < MODELS; i++) {
		for (k = 0; k < SCHEMES; k++) {
			snprintf(name, sizeof(name), "%s, %s", models[i].name,
				 schemes[k].name);
			gf_report_row(
				r, name,
				schemes[k].column
					? gf_paper_value(&s->paper, "Table IV",
							 models[i].name,
							 schemes[k].column)
					: NAN,
				s->result[i][k].iteration_s, 3);
		}
	}
	gf_report_close(r);
}

/* The startup that would give the paper's WFBP figure exactly. */
static double implied_startup_s(struct study *s, size_t i)
{
	const struct gf_model_profile *m = s->model[i];
	double paper_s =
		gf_paper_value(&s->paper, "Table IV", models[i].name, "wfbp");

	return s->startup_s -
	       (s->result[i][WFBP].iteration_s - paper_s) / (double)m->ntensors;
}

static double messages(const struct study *s, enum scheme scheme)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < MODELS; i++)
		sum += (double)s->result[i][scheme].messages;
	return sum / (double)MODELS;
}

static void why_others(struct gf_report *r, const struct study *s)
{
	gf_report_say(r,
		      "MG-WFBP merges whenever the next gradient is ready "
		      "within a, which is longer than most layers' backward. "
		      "With every tensor's backward equally long (\"even "
		      "layers\") it ends up with %.1f messages per model, no "
		      "overlap at all, and that is what the paper measured. "
		      "By FLOPs a few layers take longer than a and keep %.1f "
		      "messages apart. The paper does not give layer times, "
		      "and MG-WFBP hangs on them.",
		      messages(s, MG_EVEN), messages(s, MG_WFBP));
	gf_report_say(r,
		      "ASC-WFBP is the corrected algorithm, \"Algorithm 1\" "
		      "the printed one. gamma = %.1f for every size would let "
		      "two large messages move faster than the link: b = %.2f "
		      "ns per byte is already what a full link needs (2/B = "
		      "%.2f). \"gamma <= link\" raises gamma with the size so "
		      "that two messages together stay at the link's rate. "
		      "\"optimal\" is gradflow's own schedule on that network.",
		      s->gamma, 1e9 * s->per_byte_s, 1e9 * s->link_s_per_byte);
	gf_report_say(r, "DenseNet-201 is predicted to hide nearly all of its "
			 "communication. The paper measured about 0.1 s on top "
			 "and puts it down to the many small tensors; a + b m "
			 "has no price for them once they are merged.");
}

static void why_iv(struct gf_report *r, struct study *s)
{
	double low = INFINITY, high = 0;
	size_t i;

	for (i = 0; i < MODELS; i++) {
		low = fmin(low, implied_startup_s(s, i));
		high = fmax(high, implied_startup_s(s, i));
	}
	gf_report_say(r,
		      "WFBP sends one message per tensor, most of them far "
		      "below the 8 KiB at which the paper's fit of a and b "
		      "begins. The measured times mean a startup of %.2f to "
		      "%.2f ms for these instead of %.1f ms; with the printed "
		      "a the prediction is too slow by that.",
		      1e3 * low, 1e3 * high, 1e3 * s->startup_s);
	why_others(r, s);
}

static void speed_ups(struct gf_report *r, struct study *s)
{
	static const struct {
		const char *column;
		enum scheme over;
	} columns[] = {{"S1", WFBP}, {"S2", MG_WFBP}};
	char name[64];
	size_t i, k;

	gf_report_open(r, "ASC-WFBP Table IV, S1 and S2",
		       "speed-up of ASC-WFBP (gamma <= link)");
	for (i = 0; i < MODELS; i++) {
		for (k = 0; k < GF_ARRAY_LENGTH(columns); k++) {
			snprintf(name, sizeof(name), "%s, over %s",
				 models[i].name, schemes[columns[k].over].name);
			gf_report_row(
				r, name,
				gf_paper_value(&s->paper, "Table IV",
					       models[i].name,
					       columns[k].column),
				s->result[i][columns[k].over].iteration_s /
					s->result[i][ASC_CAPPED].iteration_s,
				2);
		}
	}
	gf_report_close(r);
}

/* Eq. 42 */
static double largest_speed_up(const struct study *s, size_t i)
{
	const struct gf_model_profile *m = s->model[i];
	double compute_s = m->forward_s + m->backward_s;
	double comm_s = (double)gf_model_profile_bytes(m) * s->link_s_per_byte;

	return s->ranks * compute_s /
	       (compute_s + comm_s - fmin(m->backward_s, comm_s));
}

static void table_v(struct gf_report *r, struct study *s)
{
	char name[64];
	size_t i;

	gf_report_open(
		r, "ASC-WFBP Table V",
		"speed-up over one GPU: the bound (Eq. 42) and ASC-WFBP");
	for (i = 0; i < MODELS; i++) {
		const struct gf_model_profile *m = s->model[i];

		snprintf(name, sizeof(name), "%s, S_max", models[i].name);
		gf_report_row(r, name,
			      gf_paper_value(&s->paper, "Table V",
					     models[i].name, "S_max"),
			      largest_speed_up(s, i), 1);
		snprintf(name, sizeof(name), "%s, S", models[i].name);
		gf_report_row(r, name,
			      gf_paper_value(&s->paper, "Table V",
					     models[i].name, "S"),
			      s->ranks * (m->forward_s + m->backward_s) /
				      s->result[i][ASC_CAPPED].iteration_s,
			      1);
	}
	gf_report_close(r);
	gf_report_say(r,
		      "S is t_f + t_b over Table IV's time, and t_f + t_b of "
		      "three models was inverted from the paper's S: the S "
		      "rows repeat Table IV's errors. S_max does not, and "
		      "agrees: the inverted times are right.");
}

static int picture(struct gf_report *r, struct study *s, struct gf_error *err)
{
	static const enum scheme shown[] = {WFBP, MG_WFBP, ASC_CAPPED};
	struct gf_plot p = {.script = "bars"};
	size_t i, k;

	gf_plot_text(&p, "title", "ASC-WFBP's Table IV beside the predictions");
	gf_plot_text(&p, "subtitle",
		     "32 GPUs, 10 Gb/s Ethernet, a = 1.4 ms, b = 1.7 ns per "
		     "byte");
	gf_plot_text(&p, "ylabel", "time per iteration");
	gf_plot_text(&p, "unit", "s");
	gf_plot_number(&p, "pairs", 1);
	gf_text_addf(&p.csv, "model,WFBP (paper),WFBP (predicted),"
			     "MG-WFBP (paper),MG-WFBP (predicted),"
			     "ASC-WFBP (paper),ASC-WFBP (predicted)\n");
	for (i = 0; i < MODELS; i++) {
		gf_plot_label(&p.csv, models[i].name);
		for (k = 0; k < GF_ARRAY_LENGTH(shown); k++) {
			gf_plot_cell(&p.csv,
				     gf_paper_value(&s->paper, "Table IV",
						    models[i].name,
						    schemes[shown[k]].column));
			gf_plot_cell(&p.csv,
				     s->result[i][shown[k]].iteration_s);
		}
		gf_text_addf(&p.csv, "\n");
	}
	return gf_report_picture(r, "asc-wfbp-table-4", &p, err);
}

int gf_report_asc_wfbp(struct gf_report *r, struct gf_error *err)
{
	struct study s = {.printed = NULL};
	size_t i;
	int rc = gf_paper_load("asc-wfbp", &s.paper, err);

	if (!rc)
		rc = prepare(&s, err);
	if (!rc) {
		gf_report_section(r, &s.paper);
		table_iii(r, &s);
		table_iv(r, &s);
		why_iv(r, &s);
		speed_ups(r, &s);
		table_v(r, &s);
		rc = picture(r, &s, err);
	}
	if (!rc)
		rc = gf_paper_check(&s.paper, err);
	for (i = 0; i < MODELS; i++) {
		gf_model_profile_free(s.model[i]);
		gf_model_profile_free(s.even[i]);
	}
	gf_network_free(s.printed);
	gf_network_free(s.capped);
	gf_paper_release(&s.paper);
	return rc;
}
