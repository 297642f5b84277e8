/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of osu_allreduce (OSU Micro-Benchmarks): sizes in bytes and the
 * mean time over the ranks, after which -f, -z and -c put further columns. It
 * does not say how many ranks there were, but a log may: "mpirun -np 2
 * osu_allreduce". The other tests of the collection print the same table under
 * another heading.
 */
#include "import/importers.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <string.h>

#include "base/heap.h"
#include "base/log_lines.h"
#include "base/units.h"
#include "import/readings.h"

static const char heading[] = "# OSU MPI";

enum { MOST_WORDS = 64 };

struct osu {
	struct gf_readings *all;
	struct gf_text other; /* the heading of the first other test */
	bool wanted;          /* the rows that stand are of an all-reduce */
	bool begun;
	int ranks; /* of a command line; 0: there was none */
};

/* "# OSU MPI-CUDA Allreduce Latency Test v7.5" */
static void take_heading(struct osu *o, const char *line, size_t number)
{
	struct gf_imported *imported = o->all->imported;
	const char *version = strrchr(line, ' ');
	const bool again = o->all->ntaken > 0;
	const char *test = line + strlen("# ");

	o->begun = true;
	o->wanted = strstr(line, " Allreduce Latency Test") &&
		    !strstr(line, "Non-blocking") && !again;
	if (!o->wanted) {
		gf_imported_leave(imported,
				  strstr(line, " Allreduce Latency Test") &&
						  again
					  ? "further tables of an all-reduce"
					  : "tables of other tests",
				  number);
		if (!o->other.length)
			gf_text_addf(&o->other, "%s", test);
	} else if (version && version[1] == 'v' && !imported->version) {
		imported->version = gf_xstrdup(version + 2);
	}
}

/* "mpirun -np 2 ... osu_allreduce"; false: the line is none. */
static bool take_command(struct osu *o, char **words, size_t n)
{
	long long ranks = 0;
	bool found = false;
	size_t i;

	for (i = 0; i < n; i++) {
		const char *slash = strrchr(words[i], '/');

		found |= strcmp(slash ? slash + 1 : words[i],
				"osu_allreduce") == 0;
		if (!found && i + 1 < n &&
		    (strcmp(words[i], "-n") == 0 ||
		     strcmp(words[i], "-np") == 0))
			gf_units_int(words[i + 1], 1, INT_MAX, &ranks, NULL);
	}
	if (!found || !ranks || o->all->ntaken)
		return false;
	o->ranks = (int)ranks;
	return true;
}

static int take_row(struct osu *o, char *line, size_t number,
		    struct gf_error *err)
{
	struct gf_reading r = {
		.algorithm = "library", /* what MPI chose to do */
		.factors = "",
		.library = "Open MPI", /* no other that has variants */
		.dense = true,
		.place = number,
	};
	char *words[MOST_WORDS];
	size_t n = gf_log_words(line, words, MOST_WORDS);
	long long size;
	double time_us;
	bool begins =
		n > 0 && gf_units_int(words[0], 0, LLONG_MAX, &size, NULL) == 0;

	if (n == 0 || (begins && o->begun && !o->wanted))
		return 0;
	if (!o->wanted || !begins || n < 2 ||
	    gf_units_real(words[1], 0, DBL_MAX, &time_us, NULL) < 0) {
		if (take_command(o, words, n))
			return 0;
		gf_imported_leave(o->all->imported,
				  o->wanted && begins
					  ? "broken rows"
					  : "lines that are no rows",
				  number);
		return 0;
	}
	r.ranks = o->ranks;
	r.size_bytes = (size_t)size;
	r.time_s = 1e-6 * time_us;
	r.wrong = n > 2 && strcmp(words[n - 1], "Fail") == 0;
	return gf_readings_take(o->all, &r, err);
}

static int recognise(const char *text, size_t size)
{
	(void)size;
	return gf_log_has_line(text, heading, " Test");
}

static int read_osu(const struct gf_import *in, struct gf_profile *out,
		    struct gf_text *remarks, struct gf_error *err)
{
	struct gf_readings all = {.imported = in->imported};
	struct gf_log log = {.at = in->text};
	struct osu o = {.all = &all};
	char *line;
	int rc = 0;

	while (rc == 0 && (line = gf_log_next(&log)))
		if (strncmp(line, heading, strlen(heading)) == 0)
			take_heading(&o, line, log.line);
		else if (*line != '#')
			rc = take_row(&o, line, log.line, err);
	gf_log_release(&log);
	if (rc == 0 && !all.ntaken && o.other.length)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want the table of osu_allreduce, got "
				  "that of the %.60s",
				  in->file, o.other.data);
	if (rc == 0) {
		out->network = gf_xcalloc(1, sizeof(*out->network));
		rc = gf_readings_finish(&all, in, out->network, remarks, err);
	}
	gf_text_release(&o.other);
	gf_readings_release(&all);
	return rc;
}

const struct gf_importer gf_importer_osu = {
	.name = "osu",
	.description = "the table of osu_allreduce",
	.recognise = recognise,
	.read = read_osu,
};
