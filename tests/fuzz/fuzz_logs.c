/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logs through the scanner that takes labels off their lines, bytes through gunzip, and both
 * through the list of files that nothing reads. A line is a part of the text, as people see it.
 */
#include "base/gunzip.h"
#include "base/log_lines.h"
#include "documents/foreign.h"
#include "harness.h"
#include "imports/importers.h"

static void try_lines(const char *data)
{
	struct gf_log log = {.at = data};
	size_t lines = 0, length = strlen(data), seen = 0;
	const char *line, *p;

	while ((line = gf_log_next(&log))) {
		seen += strlen(line);
		if (log.line != ++lines)
			harness_fail("lines are counted", line);
		for (p = line; *p; p++)
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				harness_fail("no control character", line);
		if (*line == ' ')
			harness_fail("no blank begins it", line);
	}
	if (seen > length)
		harness_fail("no line has more than stood there", data);
	gf_log_release(&log);
}

static bool try_logs(const char *data, size_t size, struct gf_rng *rng)
{
	char *copy = gf_xmemdup(data, size + 1);
	struct gf_error err = {""};
	int rc;

	(void)rng;
	try_lines(data);
	rc = gf_foreign_refuse("f", data, size, &err) ||
	     gf_foreign_refuse_rest("f", data, size, &err);
	if (rc)
		harness_expect_line(&err, "f: ");
	rc = gf_gunzip("f", &copy, &size, &err);
	if (rc)
		harness_expect_line(&err, "f: ");
	free(copy);
	return !rc;
}

static const char *const seeds[] = {
	"tests/data/import/*.log",
	"tests/data/import/*.gz",
	NULL,
};

const struct harness harness = {.seeds = seeds, .try = try_logs};
