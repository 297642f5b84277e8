/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/imports/report: what happened in a job: its steps and messages, the ranks that came last, and
 * what a step would take without them, by the best plan, and on other ranks. */
#ifndef GF_REPORT_REPORT_H
#define GF_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "cli/plot.h"
#include "documents/stream.h"
#include "imports/job.h"

/*
 * What slow ranks cost a run, by simulating its steps again without them (Lin et al. 2025,
 * "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI).
 *
 * On every rank a step begins where the last message of the step before has ended, for which all
 * ranks have waited; update, loading, forward and backward follow. A message starts when the last
 * rank has made it, and then takes as long as it took on the rank that came last. A rank that is
 * not late does, in every step and message by message, what the median rank does of those that are
 * as early as the first but for noise.
 */
struct gf_straggler {
	int rank;
	double factor; /* by which it computes longer than if it were not late */
	double noise;  /* of its steps: standard deviation / median */
	double cost_s; /* of a step, if it alone were late */
};

struct gf_stragglers {
	/* medians over steps: */
	double iteration_s; /* a step, simulated */
	double without_s;   /* no rank late */
	struct gf_straggler *ranks;
	size_t nranks;
	size_t slowest; /* the index of the one that costs most */
};

/* Of a job whose traces of all ranks are there. The lanes: of its plan, or as many messages as it
 * had under way at once. -EINVAL: it lacks what this needs, with what is missing; -ENOTSUP: a
 * period, gradients that are stale, or messages in halves, of a plan that is not NULL. */
int gf_stragglers_find(const struct gf_import_job *job, const struct gf_plan *p,
		       struct gf_stragglers *out, struct gf_error *err);
void gf_stragglers_release(struct gf_stragglers *s);

/* Of the steps of all ranks: the median, and the quartiles about it. The median of many more would
 * lie in [least_s, most_s] in 19 of 20 cases, by the order of the values alone (Conover 1999,
 * "Practical Nonparametric
 * Statistics", 3.2). */
struct gf_report_times {
	double median_s, low_s, high_s, least_s, most_s, mean_s;
};

enum {
	GF_REPORT_STEP,
	GF_REPORT_COMPUTE,
	GF_REPORT_COMMUNICATION,
	GF_REPORT_EXPOSED, /* of communication */
	GF_REPORT_PARTS
};
extern const char *const gf_report_parts[GF_REPORT_PARTS];

/* Messages of one kind, group size and size, which all traced ranks have. */
struct gf_report_size {
	enum gf_collective_kind kind;
	int ranks; /* of the group */
	size_t size_bytes;
	size_t count;
	struct gf_report_times times; /* of the rank that came last */
	double waited_s;              /* by the other ranks, for it: the mean */
	double expected_s;            /* by the profile or the topology; NAN: neither */
};

struct gf_report_rank {
	int rank;
	struct gf_report_times parts[GF_REPORT_PARTS]; /* of its steps */
	size_t last;                                   /* messages to which it came last */
	/* What it cost the others in messages: in each to which it came last, the time in which all
	 * others waited for it alone, from the arrival of the next to last to its own; of messages
	 * for which they wait at the same time, the longest. The mean of a step; where the traces
	 * have no steps, of a message. */
	double late_s;
};

/* On so many ranks, by the plan that would be made there. */
struct gf_report_scale {
	int ranks;
	double iteration_s, low_s, high_s; /* low_s 0: nothing is known */
	double efficiency;                 /* to one rank, which exchanges nothing */
};

struct gf_report_whole {
	const char *kind;      /* of traces */
	size_t nranks, nsteps; /* that all of them have */
	struct gf_report_times parts[GF_REPORT_PARTS];
	struct gf_report_size *sizes;
	size_t nsizes;
	struct gf_report_rank *ranks;
	size_t latest;             /* the index of that which cost most */
	bool late;                 /* by more than noise, and alone */
	size_t matched, unmatched; /* messages */
	int of_ranks; /* of the largest group: more than nranks if traces are not there */
	const struct gf_import_job *job; /* borrowed */

	struct gf_stragglers stragglers; /* nranks 0: not simulated */
	struct gf_text why_not;          /* the reason */

	bool scales;          /* asked for: plans of more ranks, too */
	struct gf_plan *best; /* NULL: there is no profile of the job */
	struct gf_report_scale *scale;
	size_t nscale;
	int knee; /* the first ranks with an efficiency below GF_REPORT_KNEE; 0: none that was
		   * tried */
};

#define GF_REPORT_KNEE 0.5
/* A rank is late for which the others wait longer than this share of a step, or message; it is so
 * alone if it makes this share of all such waits. */
#define GF_REPORT_LATE  0.05
#define GF_REPORT_ALONE 0.75
/* A job waits for its network if more than this share of a step is exposed. */
#define GF_REPORT_WAITS 0.5

/* What the traces themselves show, in a zeroed report. -EINVAL: they hold neither steps nor
 * messages. */
int gf_report_see(struct gf_report_whole *r, const struct gf_import_job *job, struct gf_error *err);
/* The plan of the documents, if its messages are known: a rule has none. Else NULL. */
static inline const struct gf_plan *gf_report_plan(const struct gf_documents *d)
{
	return d->plan && !d->plan->rule ? d->plan : NULL;
}

/*
 * The same, and what is expected. d: its plan (that the job ran), topology and profile (costs that
 * messages are expected to have) may each be NULL. own: the job's own profile, or NULL. notes:
 * lines for the user. r: zeros, but for what is asked for.
 */
int gf_report_find(struct gf_report_whole *r, const struct gf_import_job *job,
		   const struct gf_documents *d, const struct gf_profile *own,
		   struct gf_text *notes, struct gf_error *err);
void gf_report_whole_release(struct gf_report_whole *r);

/* The profile that a job's traces hold: by its plan, as gf-plan --refine finds it, or (NULL) as
 * gf-profile --import reads them. Fills a zeroed profile; notes: lines for the user. -EINVAL: they
 * hold none, with what is missing. */
int gf_report_profile(const char *path, const struct gf_plan *p, struct gf_profile *out,
		      struct gf_text *notes, struct gf_error *err);

/* Ten lines, a table of sizes, and what to do next, for people; or rows of `part` job, rank,
 * message and scale. */
void gf_report_table(const struct gf_report_whole *r, size_t window, struct gf_text *out);
void gf_report_json(const struct gf_report_whole *r, struct gf_text *out);
/* A bar for each rank: what its step is made of. */
void gf_report_plot(const struct gf_report_whole *r, struct gf_plot *picture);

/*
 * Two runs side by side: traces of jobs, or tables of all-reduces. What both have is compared: the
 * times of steps, and of messages by kind and size, or of an algorithm by size. A rank's steps are
 * set beside its own. A time is slower if its median is later by more than GF_UNCERTAINTY_TIMES, by
 * which medians of one thing differ, and the doubt of both medians, on any rank; a table has one
 * time without doubt. Times that were 0 before are not compared.
 */
struct gf_against {
	const char *before; /* files */
	const char *const *after;
	size_t nafter;
	const struct gf_plan *plan; /* that both ran; or NULL */
	bool table;                 /* for people, else JSON Lines */
	size_t width;               /* of the table; 0: any */
};

/* notes: lines for the user. 1, with the reason: something is slower; -EINVAL: nothing is in
 * both. */
int gf_against(const struct gf_against *a, struct gf_text *out, struct gf_text *notes,
	       struct gf_error *err);

#endif
