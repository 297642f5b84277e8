/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every row says how many ranks there were: of n, an all-reduce has busbw/algbw = 2(n-1)/n, which
 * is 1 or more. A reduce-scatter, an all-gather and an all-to-all have (n-1)/n, which is less; a
 * broadcast and a reduce have 1, and a root. Both figures are rounded, so a row allows a range, and
 * the rows together a narrower one.
 */
#include "imports/nccl_run.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "imports/readings.h"

enum { RANKS_MOST = 1 << 28 };

struct gf_nccl_run *gf_nccl_begin(struct gf_nccl_log *log, size_t line)
{
	struct gf_nccl_run *run = log->nruns ? &log->runs[log->nruns - 1] : NULL;

	if (run && !run->nrows)
		return run;
	run = gf_array_push(&log->runs, &log->nruns, &log->run_capacity);
	run->line = line;
	return run;
}

void gf_nccl_name(struct gf_nccl_run *run, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(run->program, sizeof(run->program), "%.63s", slash ? slash + 1 : path);
}

void gf_nccl_list_rank(struct gf_nccl_run *run, int rank, int group, int count)
{
	if (!run->listed)
		run->group = group;
	if (run->group == group && run->listed < RANKS_MOST)
		run->listed += count;
	else if (run->group != group)
		run->split = true;
	if (rank <= INT_MAX - count && rank + count > run->end)
		run->end = rank + count;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* A rank's host, by its name. */
static void list_host(struct gf_nccl_run *run, const char *name)
{
	char *copy = gf_xstrdup(name), **found;

	found = tsearch(copy, &run->names, by_name);
	if (found && *found == copy)
		run->hosts++;
	else
		free(copy);
}

void gf_nccl_add(struct gf_nccl_log *log, const struct gf_nccl_row *row)
{
	struct gf_nccl_run *run = &log->runs[log->nruns - 1];

	if (!run->nrows) {
		run->told = log->told;
		memset(&log->told, 0, sizeof(log->told));
	}
	if (!run->nrows++)
		run->first = log->nrows;
	*gf_array_push(&log->rows, &log->nrows, &log->row_capacity) = *row;
}

void gf_nccl_release(struct gf_nccl_log *log)
{
	for (size_t i = 0; i < log->nruns; i++)
		tdestroy(log->runs[i].names, free);
	free(log->runs);
	free(log->rows);
	memset(log, 0, sizeof(*log));
}

/* --- what the rows say ---------------------------------------------------- */

/* What busbw/algbw can be, by all rows of a run: from `low` to `high`. */
struct range {
	double low, high;
	bool reduces, rooted;
	size_t apart; /* the line of a row that fits none before it; 0 */
};

static struct range range_of(const struct gf_nccl_log *log, size_t i)
{
	const struct gf_nccl_row *r = log->rows + log->runs[i].first;
	const struct gf_nccl_row *end = r + log->runs[i].nrows;
	struct range f = {0, INFINITY, true, false, 0};
	double low, high;

	for (; r < end; r++) {
		f.reduces &= r->reduces;
		f.rooted |= r->root >= 0;
		if (!(r->algbw > r->algbw_half))
			continue;
		low = (r->busbw - r->busbw_half) / (r->algbw + r->algbw_half);
		high = (r->busbw + r->busbw_half) / (r->algbw - r->algbw_half);
		/* a product of rounded figures is not exact to the last bit */
		low -= 1e-9;
		high += 1e-9;
		if ((low > f.high || high < f.low) && !f.apart)
			f.apart = r->line;
		f.low = fmax(f.low, low);
		f.high = fmin(f.high, high);
	}
	return f;
}

/* What rounding leaves of 1. */
static const double below_allreduce = 0.995;

/* Ranks of an all-reduce that has this factor. */
static double ranks_of(double factor)
{
	return factor < 2 ? 2 / (2 - factor) : INFINITY;
}

/* "all_reduce_perf", "-CUDA Allreduce Latency Test"; no Iallreduce, Allgatherv and the like. */
static bool find_named(const char *program, enum gf_coll_half *collective)
{
	static const struct {
		enum gf_coll_half collective;
		const char *name;
	} names[] = {
		{GF_COLL_WHOLE, "all_reduce"},
		{GF_COLL_WHOLE, "allreduce"},
		{GF_COLL_REDUCE_SCATTER, "reduce_scatter"},
		{GF_COLL_ALL_GATHER, "all_gather"},
		{GF_COLL_ALL_GATHER, "allgather"},
	};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(names); i++) {
		const char *at = strcasestr(program, names[i].name);
		const char *end = at ? at + strlen(names[i].name) : NULL;

		*collective = names[i].collective;
		if (at && (at == program || !isalpha((unsigned char)at[-1])) &&
		    (!*collective || !isalpha((unsigned char)*end)) &&
		    !strcasestr(program, "Non-blocking") && !strcasestr(program, "Neighbor"))
			return true;
	}
	return false;
}

/* The collective of a run; false, and why: it is none that a profile may have. Its name alone tells
 * an all-gather from an all-to-all. */
static bool find_collective(const struct gf_nccl_log *log, size_t i, enum gf_coll_half *collective,
			    struct gf_text *why)
{
	const struct gf_nccl_run *run = &log->runs[i];
	struct range f = range_of(log, i);

	*collective = GF_COLL_WHOLE;
	if (run->program[0] && !find_named(run->program, collective))
		gf_text_addf(why, "a run of %s", run->program);
	else if (!f.reduces && *collective != GF_COLL_ALL_GATHER)
		gf_text_addf(why, "a collective that reduces nothing");
	else if (f.rooted)
		gf_text_addf(why, "a collective with a root, as reduce or broadcast");
	else if (f.apart)
		gf_text_addf(why, "rows of several runs: busbw/algbw changes at %s %zu",
			     log->imported->unit ? log->imported->unit : "line", f.apart);
	else if (f.high < 0.45)
		gf_text_addf(why, "a run of one rank");
	else if (f.high < below_allreduce && !run->program[0])
		*collective = GF_COLL_REDUCE_SCATTER;
	return !why->length;
}

/* --- how many ranks ------------------------------------------------------- */

static int want_ranks(const struct gf_import *in, int least, int most, struct gf_error *err)
{
	if (most == INT_MAX)
		return gf_import_want_ranks(in, err);
	return gf_error_set(err, -EINVAL,
			    "%s: busbw/algbw allows %d to %d ranks, and nothing else says how "
			    "many: want --ranks",
			    in->file, least, most);
}

/* A program that calls itself all_reduce is believed, but not its busbw. */
static struct range figures_of(const struct gf_import *in, const struct gf_nccl_log *log, size_t i,
			       enum gf_coll_half collective, struct gf_text *remarks)
{
	struct range f = range_of(log, i);

	/* a half has (n-1)/n */
	f.low *= collective ? 2 : 1;
	f.high *= collective ? 2 : 1;
	if (f.high >= below_allreduce)
		return f;
	gf_text_addf(remarks,
		     "%s: %s has a busbw of %.3g times the algbw, where an all-reduce has 1 or "
		     "more: is it one?\n",
		     in->file, log->runs[i].program, (f.low + f.high) / 2);
	return (struct range){.low = 0, .high = INFINITY};
}

static int find_ranks(const struct gf_import *in, const struct gf_nccl_log *log, size_t i,
		      enum gf_coll_half collective, struct gf_text *remarks, int *ranks,
		      struct gf_error *err)
{
	const struct gf_nccl_run *run = &log->runs[i];
	const struct range f = figures_of(in, log, i, collective, remarks);
	const double high = floor(ranks_of(f.high) + 1e-6);
	const int least = (int)fmin(ceil(ranks_of(fmin(f.low, 1.999999)) - 1e-6), INT_MAX);
	const int most = high < INT_MAX ? (int)high : INT_MAX;
	const int end = run->split ? run->listed : run->end;

	if (in->ranks > 0)
		*ranks = in->ranks;
	else if (end >= least && end <= most && end > 0)
		*ranks = end;
	else if (run->listed >= least && run->listed <= most && run->listed > 0)
		*ranks = run->listed;
	else if (least == most)
		*ranks = least;
	else
		return want_ranks(in, least, most, err);
	if (*ranks < least || *ranks > most)
		gf_text_addf(remarks,
			     "%s: --ranks %d is taken, though busbw/algbw is that of %d%s ranks\n",
			     in->file, *ranks, *ranks < least ? least : most,
			     least == most    ? ""
			     : *ranks < least ? " or more"
					      : " or fewer");
	else if (run->listed && *ranks != run->listed)
		gf_text_addf(
			remarks, "%s: %d ranks are taken, %s, though the list of ranks has %d\n",
			in->file, *ranks, in->ranks > 0 ? "as --ranks says" : "as busbw/algbw says",
			run->listed);
	return 0;
}

/* --- the result ----------------------------------------------------------- */

/* variant: what the library was told, or NULL; told: --imported says it. */
static int take_rows(const struct gf_nccl_log *log, size_t run, enum gf_coll_half collective,
		     int ranks, const char *variant, bool told, struct gf_readings *all,
		     struct gf_error *err)
{
	const struct gf_nccl_row *first = log->rows + log->runs[run].first;
	const struct gf_nccl_row *r, *end = first + log->runs[run].nrows;
	const bool part = log->parts && collective == GF_COLL_ALL_GATHER;
	int rc = 0;

	for (r = first; r < end && rc == 0; r++) {
		/* what MPI or NCCL chose to do */
		struct gf_reading reading = {
			.ranks = ranks,
			.collective = collective,
			.size_bytes = r->size_bytes * (part ? (size_t)ranks : 1),
			.time_s = 1e-6 * r->time_us,
			.algorithm = "library",
			.factors = "",
			.variant = variant,
			.library = log->library,
			.hosts = variant || told ? log->runs[run].hosts : 0,
			.dense = true,
			.wrong = r->wrong,
			.place = r->line,
		};

		if (strcmp(first->type, r->type) == 0)
			rc = gf_readings_take(all, &reading, err);
		else
			gf_imported_leave(log->imported, "rows of another type or redop", r->line);
	}
	return rc;
}

static bool is_told(const struct gf_nccl_told *t)
{
	return t->algorithm[0] || t->protocol[0] || t->channels[0] || t->least[0];
}

static bool tells(const struct gf_nccl_log *log)
{
	for (size_t i = 0; i < log->nruns; i++)
		if (log->runs[i].nrows && is_told(&log->runs[i].told))
			return true;
	return false;
}

/* Where they are few of the many parts of an environment, no words say them. */
static char *told_words(const struct gf_nccl_told *t, const struct gf_dialect *dialect,
			struct gf_error *err)
{
	struct gf_tuning tuning;
	char *words;

	if (!is_told(t))
		return gf_xstrdup("default");
	if (t->least[0] && strcmp(t->least, t->channels) != 0)
		return NULL; /* between both */
	words = gf_xasprintf("%s.%s%s%s", t->algorithm, t->protocol, t->channels[0] ? "." : "",
			     t->channels);
	if (gf_tuning_read(dialect, words, &tuning, err) == 0) {
		words = gf_xreallocarray(words, GF_TUNING_TEXT, 1);
		gf_tuning_text(&tuning, words);
		return words;
	}
	free(words);
	return NULL;
}

/* Each run of an all-reduce, on as many ranks as that one, as what NCCL was told. */
static int take_variants(const struct gf_nccl_log *log, const struct gf_nccl_run *like, int ranks,
			 struct gf_readings *all, struct gf_error *err)
{
	const struct gf_dialect *dialect = gf_dialect_of(log->library);
	enum gf_coll_half collective;
	struct gf_error why;
	int rc = 0;

	for (size_t i = 0; i < log->nruns && rc == 0; i++) {
		const struct gf_nccl_run *run = &log->runs[i];
		GF_RELEASED(gf_text_release) struct gf_text other = {0};
		GF_FREED char *words = NULL;

		if (!run->nrows || !find_collective(log, i, &collective, &other) || collective)
			continue;
		if (run->listed != like->listed) {
			gf_imported_leave(log->imported, "tables of variants on other ranks",
					  run->line);
			continue;
		}
		words = told_words(&run->told, dialect, &why);
		if (words)
			rc = take_rows(log, i, collective, ranks, words, false, all, err);
		else
			gf_imported_leave(log->imported,
					  "tables under an environment that is not ALGORITHM, "
					  "PROTOCOL and channels",
					  run->line);
	}
	return rc;
}

/* Is a run of the same collective a better choice than one before it? */
static bool is_better(const struct gf_nccl_run *run, const struct gf_nccl_run *taken, int ranks)
{
	if (run->sweeps && run->listed != taken->listed)
		return ranks > 0 ? run->listed == ranks : run->listed > taken->listed;
	/* what was told nothing comes first */
	return is_told(&taken->told) && !is_told(&run->told);
}

/* The run of the collective that counts; nruns: there is none. Names the others. */
static size_t choose(const struct gf_nccl_log *log, enum gf_coll_half wanted, int ranks)
{
	static const char *const further[] = {"further tables of an all-reduce",
					      "further tables of a reduce-scatter",
					      "further tables of an all-gather"};
	const bool told = !wanted && tells(log);
	size_t i, taken = log->nruns;

	for (i = 0; i < log->nruns; i++) {
		const struct gf_nccl_run *run = &log->runs[i];
		enum gf_coll_half collective;
		GF_RELEASED(gf_text_release) struct gf_text other = {0};
		const bool known = find_collective(log, i, &collective, &other);

		if (!run->nrows || !known || collective != wanted)
			continue;
		if (taken == log->nruns) {
			taken = i;
		} else {
			const bool better = is_better(run, &log->runs[taken], ranks);
			const size_t left = better ? taken : i;

			taken = better ? i : taken;
			if (!told)
				gf_imported_leave(log->imported, further[wanted],
						  log->runs[left].line);
		}
	}
	return taken;
}

/* Names the runs of other collectives; *why is the first one's. */
static void name_others(const struct gf_nccl_log *log, struct gf_text *why)
{
	enum gf_coll_half ignored;

	for (size_t i = 0; i < log->nruns; i++) {
		GF_RELEASED(gf_text_release) struct gf_text other = {0};
		GF_FREED char *what = NULL;

		if (log->runs[i].nrows && !find_collective(log, i, &ignored, &other)) {
			what = gf_xasprintf("tables of %s", other.data);
			gf_imported_leave(log->imported, what, log->runs[i].line);
			if (!why->length)
				gf_text_addf(why, "%s", other.data);
		}
	}
}

static int take_collective(const struct gf_nccl_log *log, const struct gf_import *in,
			   enum gf_coll_half collective, struct gf_readings *all,
			   struct gf_text *remarks, struct gf_error *err)
{
	const size_t run = choose(log, collective, in->ranks);
	int ranks = 0, rc;

	if (run == log->nruns)
		return 0;
	rc = find_ranks(in, log, run, collective, remarks, &ranks, err);
	if (all->ranks && ranks != all->ranks) { /* a half beside others */
		gf_imported_leave(log->imported,
				  "tables of other ranks, or of nobody knows how many",
				  log->runs[run].line);
		return 0;
	}
	rc = rc ?: take_rows(log, run, collective, ranks, NULL, in->variant, all, err);
	if (rc == 0 && !collective && tells(log))
		rc = take_variants(log, &log->runs[run], ranks, all, err);
	if (rc == 0 && log->runs[run].out_of_bounds > 0 && !all->nwrong)
		gf_text_addf(remarks,
			     "%s: the run failed its check: %lld values are out of bounds; its "
			     "times may be wrong, too\n",
			     in->file, log->runs[run].out_of_bounds);
	return rc;
}

int gf_nccl_finish(struct gf_nccl_log *log, const struct gf_import *in, struct gf_profile *out,
		   struct gf_text *remarks, struct gf_error *err)
{
	GF_RELEASED(gf_readings_release) struct gf_readings all = {.imported = log->imported};
	GF_RELEASED(gf_text_release) struct gf_text why = {0};
	int half, rc = 0;

	name_others(log, &why);
	for (half = GF_COLL_WHOLE; half <= GF_COLL_ALL_GATHER && rc == 0; half++)
		rc = take_collective(log, in, (enum gf_coll_half)half, &all, remarks, err);
	if (rc == 0 && !all.ranks) {
		GF_FREED char *found = gf_imported_line(log->imported, in->file);

		rc = gf_error_set(err, -EINVAL, "%s: want the table of an all-reduce, got %s",
				  why.length ? in->file : found,
				  why.length ? why.data : "no whole row");
	}
	return rc ?: gf_readings_finish(&all, in, out, remarks, err);
}

/*
 * What a log says of a run before its rows, and what NCCL was told: variables of its environment,
 * as a shell shows them ("NCCL_ALGO=Ring all_reduce_perf") and as NCCL repeats them with
 * NCCL_DEBUG=INFO ("NCCL_ALGO set by environment to Ring"). They count for the next table.
 */

/* What follows the name of a variable; NULL: it is not there. */
static const char *value_of(const char *line, const char *name)
{
	static const char says[] = " set by environment to ";
	const char *at = strstr(line, name);

	for (; at; at = strstr(at + 1, name)) {
		const char *rest = at + strlen(name);

		if (*rest == '=')
			return rest + 1;
		if (strncmp(rest, says, strlen(says)) == 0)
			return rest + strlen(says);
	}
	return NULL;
}

static void take_word(const char *line, const char *name, char word[32])
{
	const char *value = value_of(line, name);

	/* "allreduce:ring" is for all-reduces alone */
	if (value && strncmp(value, "allreduce:", 10) == 0)
		value += 10;
	if (value)
		snprintf(word, 32, "%.*s", (int)strcspn(value, " \t\r\n;'\"."), value);
}

/* A program starts. If the program before it failed before its first row, its settings and ranks
 * are dropped. */
static void begin_anew(struct gf_nccl_log *log, size_t number)
{
	struct gf_nccl_run *run = gf_nccl_begin(log, number);

	if (!run->listed)
		return;
	tdestroy(run->names, free);
	*run = (struct gf_nccl_run){.line = number};
	memset(&log->told, 0, sizeof(log->told));
}

static void note_told(struct gf_nccl_log *log, const char *line)
{
	struct gf_nccl_told *t = &log->told;
	const char *version;

	if (!strstr(line, "CCL")) /* as in most lines */
		return;
	take_word(line, "NCCL_ALGO", t->algorithm);
	take_word(line, "NCCL_PROTO", t->protocol);
	take_word(line, "NCCL_MAX_NCHANNELS", t->channels);
	take_word(line, "NCCL_MAX_CTAS", t->channels);
	take_word(line, "NCCL_MIN_NCHANNELS", t->least);
	take_word(line, "NCCL_MIN_CTAS", t->least);
	version = strstr(line, "CCL version ");
	if (version && version > line && strchr("NR", version[-1])) {
		const char *number = version + 12 + strspn(version + 12, ": "); /* RCCL's */

		snprintf(log->library, sizeof(log->library), "%cCCL %.*s", version[-1],
			 (int)strcspn(number, "+- \t\r\n"), number);
	}
}

/* What is said of a run before its rows; false: nothing of it. The signs "#" are gone where a web
 * page has taken them for headings. */
bool gf_nccl_note_run(struct gf_nccl_log *log, const char *line, size_t number)
{
	struct gf_nccl_run *run;
	char name[128];
	int rank, group = 0, fields;
	const char *on;
	long long wrong;
	bool page = *line != '#'; /* other programs name ranks, too */

	note_told(log, line);
	line += strspn(line, "# \t");
	if (strncmp(line, "Rank ", 5) && strncmp(line, "nccl-tests ", 11) &&
	    strncmp(line, "Collective ", 11) && strncmp(line, "Out of ", 7) &&
	    strncmp(line, "nThread ", 8)) /* sscanf is slow */
		return false;
	fields = sscanf(line, "Rank %9d Group %9d", &rank, &group);
	if (fields >= 1 && (!page || strstr(line, " Pid "))) {
		run = gf_nccl_begin(log, number);
		gf_nccl_list_rank(run, rank, fields > 1 ? group : 0, 1);
		on = strstr(line, " on ");
		if (on && sscanf(on, " on %127s", name) == 1)
			list_host(run, name);
		return true;
	}
	if (sscanf(line, "nccl-tests version %127s", name) == 1) {
		free(log->imported->version);
		log->imported->version = gf_xstrdup(name);
		return true;
	}
	if (sscanf(line, "Collective test starting: %127s", name) == 1) {
		run = gf_nccl_begin(log, number);
		gf_nccl_name(run, name);
		return true;
	}
	if (sscanf(line, "Out of bounds values : %18lld", &wrong) == 1) {
		if (log->nruns)
			log->runs[log->nruns - 1].out_of_bounds = wrong;
		return true;
	}
	if (strncmp(line, "nThread ", 8) == 0)
		begin_anew(log, number);
	return false;
}
