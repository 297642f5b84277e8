/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a log of nccl-tests says of a run before its rows, and what NCCL was told: variables of its
 * environment, as a shell shows them ("NCCL_ALGO=Ring all_reduce_perf") and as NCCL repeats them
 * with NCCL_DEBUG=INFO ("NCCL_ALGO set by environment to Ring"). They count for the next table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "imports/nccl_run.h"

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

static void note_told(struct gf_nccl_log *log, const char *line)
{
	static const char *const channels[] = {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS",
					       "NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS"};
	struct gf_nccl_told *t = &log->told;
	const char *version;
	size_t i;

	if (!strstr(line, "CCL")) /* as in most lines */
		return;
	take_word(line, "NCCL_ALGO", t->algorithm);
	take_word(line, "NCCL_PROTO", t->protocol);
	for (i = 0; i < GF_ARRAY_LENGTH(channels); i++)
		take_word(line, channels[i], t->channels);
	version = strstr(line, "CCL version ");
	if (version && version > line && strchr("NR", version[-1]))
		snprintf(log->library, sizeof(log->library), "%cCCL %.*s", version[-1],
			 (int)strcspn(version + 12, "+- \t\r\n"), version + 12);
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
			gf_nccl_list_host(run, name);
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
		gf_nccl_begin(log, number);
	return false;
}

/* Where they are few of the many parts of an environment, no words say them. */
char *gf_nccl_told_words(const struct gf_nccl_told *t, const struct gf_dialect *dialect,
			 struct gf_error *err)
{
	struct gf_tuning tuning;
	char *words;

	if (!t->algorithm[0] && !t->protocol[0] && !t->channels[0])
		return gf_xstrdup("default");
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
