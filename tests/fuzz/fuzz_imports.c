/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broken files of other programs through every importer: measurements and
 * topologies. Nothing may crash or take long, every refusal is one line, and
 *what is accepted is a document.
 *
 *	fuzz_imports [--seconds N] [--seed N]
 *
 * hwloc's XML has a process of its own, and tests/unit/test_probe.c.
 */
#include <math.h>

#include "import/import.h"
#include "mutate.h"
#include "probe/format.h"

/* Seconds of the processor for one file of at most some tens of kilobytes. */
#define LONGEST_S 5.0

static void fail(const char *what, const char *why, const struct gf_text *t)
{
	printf("%s: %s:\n%.*s\n", what, why, (int)t->length,
	       t->data ? t->data : "");
	exit(1);
}

static int judge(int rc, const char *what, const struct gf_error *err,
		 const struct gf_text *t)
{
	if (rc && (!err->text[0] || strchr(err->text, '\n')))
		fail(what, "a reason that is not one line", t);
	return !rc;
}

static int try_profile(const struct gf_importer *importer,
		       const struct gf_text *t)
{
	struct gf_import in = {
		.file = "f",
		.text = t->data,
		.size = t->length,
		.batch = 32,
		.forward_s = 1e-3,
		.backward_s = NAN,
		.ranks = 4,
	};
	struct gf_profile profile = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	int rc = gf_import_profile(&in, importer->name, &profile, &remarks,
				   &err);
	char *written = rc ? NULL : gf_profile_write(&profile);

	free(written);
	gf_profile_release(&profile);
	gf_text_release(&remarks);
	return judge(rc, importer->name, &err, t);
}

static int try_topology(const struct gf_topology_format *format,
			const struct gf_text *t)
{
	const struct gf_topology_file in = {"f", t->data, t->length, 2};
	struct gf_topology topology = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	int rc;

	if (!format->read || strcmp(format->name, "hwloc") == 0)
		return 0;
	rc = format->read(&in, &topology, &remarks, &err);
	gf_topology_release(&topology);
	gf_text_release(&remarks);
	return judge(rc, format->name, &err, t);
}

static size_t count_importers(void)
{
	size_t n = 0;

	while (gf_importers[n])
		n++;
	return n;
}

static size_t count_formats(void)
{
	size_t n = 0;

	while (gf_topology_formats[n])
		n++;
	return n;
}

static int try_one(const struct seeds *s, struct gf_rng *rng)
{
	const char *seed = s->texts[gf_rng_below(rng, s->count)];
	const size_t importers = count_importers();
	size_t rounds = gf_rng_below(rng, 4);
	size_t by = gf_rng_below(rng, importers + count_formats());
	double began_s = gf_clock_s();
	struct gf_text t = {0};
	int accepted;

	gf_text_add(&t, seed, strlen(seed));
	while (rounds--)
		mutate(&t, s, rng);
	/* readers of text get what has no zero byte */
	t.length = strlen(t.data);
	accepted =
		by < importers
			? try_profile(gf_importers[by], &t)
			: try_topology(gf_topology_formats[by - importers], &t);
	if (gf_clock_s() - began_s > LONGEST_S)
		fail("too long", "a small file", &t);
	gf_text_release(&t);
	return accepted;
}

int main(int argc, char **argv)
{
	struct seeds seeds = {0};

	load_files(&seeds, "tests/data/import/*");
	load_files(&seeds, "tests/data/topologies/*");
	return fuzz(argc, argv, &seeds, try_one);
}
