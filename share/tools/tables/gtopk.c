/* SPDX-License-Identifier: BSD-3-Clause */
/* gTop-k (Shi et al. 2019): Tables I and VII, Figures 9 and 10. */
#include <math.h>
#include <stdio.h>

#include "base/array.h"
#include "coll/algorithm.h"
#include "report.h"
#include "setup.h"

enum scheme { DENSE, TOPK, GTOPK, SCHEMES };
static const struct {
	const char *name, *column;
} schemes[SCHEMES] = {
	[DENSE] = {"dense", "dense"},
	[TOPK] = {"Top-k", "topk"},
	[GTOPK] = {"gTop-k", "gtopk"},
};

/* VGG-16 as usual for CIFAR-10: the convolutions and one fully connected layer
 * of 5130 weights, which is left out. */
static const struct {
	const char *name, *file;
	bool convolutions;
} models[] = {
	{"VGG-16", "vgg16", true},
	{"ResNet-20", "resnet20", false},
	{"AlexNet", "alexnet-bn", false},
	{"ResNet-50", "resnet50", false},
};
enum { ALEXNET = 2, RESNET_50 = 3 }; /* in models */
#define MODELS GF_ARRAY_LENGTH(models)

struct study {
	struct gf_paper paper;
	int ranks;
	struct gf_link_cost link;
	double density, figure9_bytes;
	double bytes[MODELS];
};

/*
 * What the algorithms cost on a uniform network: a ring over all m bytes; an
 * all-gather by doubling, k values and k indices from each rank; a reduction
 * up and a broadcast down a binomial tree, the same 2k words in every round.
 */
static double comm_s(const struct study *s, enum scheme scheme, int ranks,
		     double bytes)
{
	static const char *const algorithms[SCHEMES] = {"ring", "rhd", "tree"};
	const double pair_bytes = 2 * s->density * bytes;
	struct gf_net_cost net = {1, &ranks, &s->link};
	struct gf_coll_args args = {.ranks = ranks, .elem_bytes = 4};
	double total = bytes;

	if (scheme == TOPK) {
		total = ranks * pair_bytes;
		args.half = GF_COLL_ALL_GATHER;
	} else if (scheme == GTOPK) {
		total = pair_bytes;
	}
	args.count_elems = (size_t)(total / 4);
	return gf_algorithm_find(algorithms[scheme])->cost_s(&args, &net);
}

/* Table I: Eqs. 5, 6 and 7. */
static double printed_s(const struct study *s, enum scheme scheme, double p,
			double m)
{
	const double alpha = s->link.alpha_s, beta = s->link.beta_s_per_byte;
	const double k = s->density * m;

	switch (scheme) {
	case DENSE:
		return 2 * (p - 1) * alpha + 2 * (p - 1) / p * m * beta;
	case TOPK:
		return log2(p) * alpha + 2 * (p - 1) * k * beta;
	default:
		return 2 * log2(p) * alpha + 4 * k * log2(p) * beta;
	}
}

static void table_i(struct gf_report *r, const struct study *s)
{
	static const int counts[] = {4, 32, 128};
	char name[64];
	size_t i, k;

	gf_report_open(r, "gTop-k Table I",
		       "formula beside our algorithms' cost, 100 MiB, density "
		       "0.001 (ms)");
	for (i = 0; i < GF_ARRAY_LENGTH(counts); i++) {
		for (k = 0; k < SCHEMES; k++) {
			snprintf(name, sizeof(name), "%s, %d workers",
				 schemes[k].name, counts[i]);
			gf_report_row(r, name,
				      1e3 * printed_s(s, (enum scheme)k,
						      counts[i],
						      s->figure9_bytes),
				      1e3 * comm_s(s, (enum scheme)k, counts[i],
						   s->figure9_bytes),
				      2);
		}
	}
	gf_report_close(r);
	gf_report_say(r,
		      "beta is per byte and k counts the bytes of the kept "
		      "values (k = density x m): values and indices together "
		      "are 2k.");
}

static void figure_9(struct gf_report *r, const struct study *s)
{
	double small_s, large_s;
	int p = 2;

	while (p < 1 << 20 && comm_s(s, GTOPK, p, s->figure9_bytes) >=
				      comm_s(s, TOPK, p, s->figure9_bytes))
		p *= 2;
	small_s = comm_s(s, TOPK, 4, s->figure9_bytes) -
		  comm_s(s, GTOPK, 4, s->figure9_bytes);
	large_s = comm_s(s, TOPK, 32, s->figure9_bytes) /
		  comm_s(s, GTOPK, 32, s->figure9_bytes);
	gf_report_say(r,
		      "Figure 9 has no numbers in the text, only that Top-k is "
		      "slightly faster for few workers and much worse at 32. "
		      "Reproduced: with 4 workers Top-k is %.2f ms faster, "
		      "gTop-k wins from %d workers on, at 32 by a factor of "
		      "%.1f. Its right half is for 32 workers by the caption "
		      "and for 64 by the text; ours is for 32.",
		      -1e3 * small_s, p, large_s);
}

/* Of ranks that exchange for so long per iteration. */
static double rate(struct study *s, size_t model, int ranks, double exchange_s)
{
	const char *row = models[model].name;
	double batch =
		gf_paper_value(&s->paper, "Table VI", row, "batch_per_rank");
	double compute_s =
		gf_paper_value(&s->paper, "Table VI", row, "iteration_s");

	return batch * ranks / (compute_s + exchange_s);
}

static double throughput(struct study *s, size_t model, enum scheme scheme,
			 int ranks)
{
	return rate(s, model, ranks, comm_s(s, scheme, ranks, s->bytes[model]));
}

static double printed_rate(struct study *s, size_t model, enum scheme scheme)
{
	return gf_paper_value(&s->paper, "Table VII", models[model].name,
			      schemes[scheme].column);
}

static void table_vii(struct gf_report *r, struct study *s)
{
	char name[64];
	size_t i, k;

	gf_report_open(r, "gTop-k Table VII",
		       "images per second, 32 workers, 1 Gb/s Ethernet");
	for (i = 0; i < MODELS; i++) {
		for (k = 0; k < SCHEMES; k++) {
			snprintf(name, sizeof(name), "%s, %s", models[i].name,
				 schemes[k].name);
			gf_report_row(
				r, name, printed_rate(s, i, (enum scheme)k),
				throughput(s, i, (enum scheme)k, s->ranks), 0);
		}
	}
	gf_report_close(r);
}

/*
 * The time beyond compute and latency that the measured dense runs mean, per
 * byte that the ring moves.
 */
static double implied_beta(struct study *s, size_t model)
{
	const char *row = models[model].name;
	double batch =
		gf_paper_value(&s->paper, "Table VI", row, "batch_per_rank");
	double p = s->ranks;
	double t = batch * p / printed_rate(s, model, DENSE) -
		   gf_paper_value(&s->paper, "Table VI", row, "iteration_s") -
		   2 * (p - 1) * s->link.alpha_s;

	return t / (2 * (p - 1) / p * s->bytes[model]);
}

/* The dense column again with the one per-byte cost that gives ResNet-50's. */
static void dense_fitted(struct gf_report *r, struct study *s)
{
	struct study fitted = *s;
	size_t i;

	fitted.link.beta_s_per_byte = implied_beta(s, RESNET_50);
	gf_report_open(r, "gTop-k Table VII, dense, beta fitted",
		       "images per second, one beta for all, from ResNet-50");
	for (i = 0; i < MODELS; i++)
		(i == RESNET_50 ? gf_report_fitted : gf_report_row)(
			r, models[i].name, printed_rate(s, i, DENSE),
			throughput(&fitted, i, DENSE, s->ranks), 0);
	gf_report_close(r);
}

/* What gTop-k saves over Top-k for AlexNet at that beta. */
static double saved_s(const struct study *s, double beta_s_per_byte)
{
	struct study other = *s;

	other.link.beta_s_per_byte = beta_s_per_byte;
	return comm_s(&other, TOPK, s->ranks, s->bytes[ALEXNET]) -
	       comm_s(&other, GTOPK, s->ranks, s->bytes[ALEXNET]);
}

static void why_vii(struct gf_report *r, struct study *s)
{
	const double ratio =
		implied_beta(s, RESNET_50) / s->link.beta_s_per_byte;
	double printed_s;

	gf_report_say(r,
		      "Not reproduced. Eq. 5 with the measured alpha and beta "
		      "promises a dense exchange many times as fast as the "
		      "one that Table VII means: ResNet-50's row means %.0f "
		      "ns per byte where point to point takes %.0f. The hosts "
		      "have a Celeron and one lane of PCIe, so Horovod and "
		      "NCCL need not have got the link's rate; the paper does "
		      "not say what they got.",
		      1e9 * implied_beta(s, RESNET_50),
		      1e9 * s->link.beta_s_per_byte);
	dense_fitted(r, s);
	gf_report_say(r,
		      "So it is one slow network (by a factor of %.1f), not "
		      "one slow model. With VGG-16's three large fully "
		      "connected layers (138 M parameters, the ImageNet "
		      "network) its dense row would fit without any "
		      "correction, which no other row does.",
		      ratio);
	printed_s = gf_paper_value(&s->paper, "Table VI", "AlexNet",
				   "batch_per_rank") *
		    s->ranks *
		    (1 / printed_rate(s, ALEXNET, TOPK) -
		     1 / printed_rate(s, ALEXNET, GTOPK));
	gf_report_say(r,
		      "The sparse columns lack the time of the local "
		      "selection: Figure 11 shows it as large as the "
		      "computation, without numbers. But it cancels between "
		      "them: for AlexNet gTop-k saves %.2f s per iteration "
		      "over Top-k by Table VII, %.2f s by Table I and %.2f s "
		      "by Table I with the slow beta. Summing the gradients "
		      "of %d ranks on the hosts is not in Table I.",
		      printed_s, saved_s(s, s->link.beta_s_per_byte),
		      saved_s(s, implied_beta(s, RESNET_50)), s->ranks);
}

static void ratios(struct gf_report *r, struct study *s)
{
	double over_d = 0, over_t = 0, printed_d = 0, printed_t = 0;
	const double n = MODELS;
	size_t i;

	for (i = 0; i < MODELS; i++) {
		double g = throughput(s, i, GTOPK, s->ranks);

		over_d += g / throughput(s, i, DENSE, s->ranks);
		over_t += g / throughput(s, i, TOPK, s->ranks);
		printed_d +=
			printed_rate(s, i, GTOPK) / printed_rate(s, i, DENSE);
		printed_t +=
			printed_rate(s, i, GTOPK) / printed_rate(s, i, TOPK);
	}
	gf_report_open(r, "gTop-k speed-ups at 32 workers",
		       "gTop-k over the others, average of four models");
	gf_report_row(r, "over dense, text and Table VII",
		      gf_paper_value(&s->paper, "scaling claims (text)",
				     "32 GPUs", "g_over_d_average"),
		      printed_d / n, 2);
	gf_report_row(r, "over Top-k, text and Table VII",
		      gf_paper_value(&s->paper, "scaling claims (text)",
				     "32 GPUs", "g_over_t_average"),
		      printed_t / n, 2);
	gf_report_row(r, "over dense, predicted", printed_d / n, over_d / n, 2);
	gf_report_row(r, "over Top-k, predicted", printed_t / n, over_t / n, 2);
	gf_report_close(r);
	gf_report_say(r,
		      "Figure 10 has no numbers in the text; its points at 32 "
		      "GPUs are Table VII over 32 times Table VI, and the "
		      "picture sets them beside our curves.");
}

/* --- pictures ------------------------------------------------------------- */

static void figure_9_axes(struct gf_plot *p)
{
	gf_plot_text(p, "subtitle",
		     "1 Gb/s Ethernet: alpha 0.436 ms, beta 9 ns per byte");
	gf_plot_number(p, "xlog", 2);
	gf_plot_text(p, "ylabel", "time");
	gf_plot_text(p, "yunit", "s");
	gf_report_curves(p);
}

static int picture_9_workers(struct gf_report *r, const struct study *s,
			     struct gf_error *err)
{
	struct gf_plot p = {.script = "curves"};
	size_t k;
	int count;

	gf_plot_text(&p, "title",
		     "gTop-k's Figure 9, left: 100 MiB, density 0.001");
	figure_9_axes(&p);
	gf_plot_text(&p, "xlabel", "workers");
	for (k = TOPK; k < SCHEMES; k++)
		for (count = 2; count <= 128; count *= 2)
			gf_report_point(&p, schemes[k].name, "linespoints",
					count,
					comm_s(s, (enum scheme)k, count,
					       s->figure9_bytes));
	return gf_report_picture(r, "gtopk-figure-9-workers", &p, err);
}

static int picture_9_sizes(struct gf_report *r, const struct study *s,
			   struct gf_error *err)
{
	struct gf_plot p = {.script = "curves"};
	double bytes;
	size_t k;

	gf_plot_text(&p, "title",
		     "gTop-k's Figure 9, right: 32 workers, density 0.001");
	figure_9_axes(&p);
	gf_plot_text(&p, "xlabel", "gradients");
	gf_plot_text(&p, "xunit", "B");
	gf_plot_number(&p, "ylog", 10);
	for (k = TOPK; k < SCHEMES; k++)
		for (bytes = 0x1p20; bytes <= 0x1p29; bytes *= 2)
			gf_report_point(
				&p, schemes[k].name, "linespoints", bytes,
				comm_s(s, (enum scheme)k, s->ranks, bytes));
	return gf_report_picture(r, "gtopk-figure-9-sizes", &p, err);
}

static int picture_10(struct gf_report *r, struct study *s, size_t model,
		      const char *file, struct gf_error *err)
{
	struct gf_plot p = {.script = "curves"};
	const double single = gf_paper_value(
		&s->paper, "Table VI", models[model].name, "images_per_s");
	size_t k;
	int count;

	gf_plot_text(&p, "title", "gTop-k's Figure 10: %s", models[model].name);
	gf_plot_text(&p, "subtitle",
		     "without the time of local selection (not given)");
	gf_plot_text(&p, "xlabel", "workers");
	gf_plot_number(&p, "xlog", 2);
	gf_plot_text(&p, "ylabel", "scaling efficiency");
	gf_plot_text(&p, "yunit", "%%");
	gf_report_curves(&p);
	for (k = 0; k < SCHEMES; k++) {
		for (count = 4; count <= 32; count *= 2)
			gf_report_point(
				&p, schemes[k].name, "lines", count,
				throughput(s, model, (enum scheme)k, count) /
					(count * rate(s, model, 1, 0)));
		gf_report_paper_point(&p, schemes[k].name, s->ranks,
				      printed_rate(s, model, (enum scheme)k) /
					      (s->ranks * single));
	}
	return gf_report_picture(r, file, &p, err);
}

static int prepare(struct study *s, struct gf_error *err)
{
	struct gf_paper *p = &s->paper;
	size_t i;
	int rc;

	s->ranks = (int)gf_paper_input(p, "ranks");
	s->link.alpha_s = gf_paper_input(p, "alpha_s");
	s->link.beta_s_per_byte = gf_paper_input(p, "beta_s_per_byte");
	s->density = gf_paper_input(p, "density");
	s->figure9_bytes = gf_paper_input(p, "figure9_message_bytes");
	rc = gf_paper_check(p, err);
	for (i = 0; i < MODELS && !rc; i++)
		rc = gf_setup_bytes(models[i].file, models[i].convolutions,
				    &s->bytes[i], err);
	return rc;
}

int gf_report_gtopk(struct gf_report *r, struct gf_error *err)
{
	struct study s = {.ranks = 0};
	int rc = gf_paper_load("gtopk", &s.paper, err);

	if (!rc)
		rc = prepare(&s, err);
	if (!rc) {
		gf_report_section(r, &s.paper);
		table_i(r, &s);
		figure_9(r, &s);
		rc = picture_9_workers(r, &s, err);
		if (!rc)
			rc = picture_9_sizes(r, &s, err);
	}
	if (!rc) {
		table_vii(r, &s);
		why_vii(r, &s);
		ratios(r, &s);
		rc = picture_10(r, &s, ALEXNET, "gtopk-figure-10-alexnet", err);
	}
	if (!rc)
		rc = picture_10(r, &s, RESNET_50, "gtopk-figure-10-resnet50",
				err);
	if (!rc)
		rc = gf_paper_check(&s.paper, err);
	gf_paper_release(&s.paper);
	return rc;
}
