/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broken files of other programs through every importer: measurements (CSV, Kineto, nccl-tests,
 * rows of gf-allreduce), parameters' names, slow pairs, and topologies. A text that is accepted
 * makes a document.
 */
#include <math.h>

#include "discovery/format.h"
#include "harness.h"
#include "imports/importers.h"
#include "simulator/whatif/uneven_ranks.h"

/* One importer, whether it recognises the text or not. */
static bool try_profile(const struct gf_importer *importer, const char *text, size_t size)
{
	struct gf_import in = {
		.file = "f",
		.text = text,
		.size = size,
		.batch = 32,
		.forward_s = 1e-3,
		.backward_s = NAN,
		.ranks = 4,
	};
	struct gf_profile profile = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	int rc = gf_import_profile(&in, importer->name, &profile, &remarks, &err);

	if (rc)
		harness_expect_line(&err, NULL);
	else
		free(gf_profile_write(&profile));
	gf_profile_release(&profile);
	gf_text_release(&remarks);
	return !rc;
}

static bool try_topology(const struct gf_topology_format *format, const char *text, size_t size)
{
	struct gf_imported imported = {0};
	const struct gf_topology_file in = {"f", text, size, 2, &imported};
	struct gf_topology topology = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	int rc = format->read(&in, &topology, &remarks, &err);

	if (rc)
		harness_expect_line(&err, NULL);
	gf_topology_release(&topology);
	gf_imported_release(&imported);
	gf_text_release(&remarks);
	return !rc;
}

/* Names and sizes that a trace lacks. */
static bool try_names(const char *text)
{
	struct gf_import in = {.file = "f", .parameters = text};
	struct gf_model_profile m = {.ntensors = 2};
	struct gf_error err = {""};
	int rc;

	m.tensors = gf_xcalloc(m.ntensors, sizeof(*m.tensors));
	m.tensors[1].count_elems = 8;
	rc = gf_import_names(&in, &m, &err);
	if (rc)
		harness_expect_line(&err, NULL);
	free(m.tensors[0].name);
	free(m.tensors[1].name);
	free(m.tensors);
	return !rc;
}

static bool try_pairs(const char *text, size_t size)
{
	struct gf_uneven u = {0};
	struct gf_text notes = {0};
	struct gf_error err = {""};
	int rc = gf_uneven_read_pairs(&u, harness_put("pairs", text, size), &notes, &err);

	if (rc)
		harness_expect_line(&err, NULL);
	gf_uneven_release(&u);
	gf_text_release(&notes);
	return !rc;
}

static bool try_imports(const char *data, size_t size, struct gf_rng *rng)
{
	const struct gf_importer *const *i;
	const struct gf_topology_format *const *f;
	/* readers of text get what has no zero byte */
	size_t length = strlen(data);
	bool accepted = try_names(data);

	(void)size;
	(void)rng;
	accepted |= try_pairs(data, length);
	for (i = gf_importers; *i; i++)
		accepted |= try_profile(*i, data, length);
	for (f = gf_topology_formats; *f; f++)
		if ((*f)->read)
			accepted |= try_topology(*f, data, length);
	return accepted;
}

static const char *const seeds[] = {
	"tests/data/import/*",
	"tests/data/topologies/*",
	"tests/data/hwloc/*",
	NULL,
};

const struct harness harness = {.seeds = seeds, .try = try_imports};
