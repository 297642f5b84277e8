/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/importers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "imports/csv.h"

static const char source[] = "--params";

struct parameters {
	struct gf_csv csv;
	int name, elems; /* columns */
	size_t *left;    /* elements per row; 0: the row is taken, or says none */
};

/* The last row not taken that can be this tensor; nrows if there is none. */
static size_t find(const struct parameters *p, const struct gf_tensor *t)
{
	size_t row;

	for (row = p->csv.nrows; row-- > 0;)
		if (p->left[row] && (t->count_elems == 0 || t->count_elems == p->left[row]))
			return row;
	return p->csv.nrows;
}

static int name_all(struct parameters *p, struct gf_model_profile *m, struct gf_error *err)
{
	size_t t, row;

	if (p->csv.nrows > (1 << 30) / (m->ntensors + 1)) /* compared pairs */
		return gf_error_set(
			err, -EINVAL,
			"%s: want a row for each of %zu gradients, and few others, got %zu", source,
			m->ntensors, p->csv.nrows);
	for (t = 0; t < m->ntensors; t++) {
		struct gf_tensor *tensor = &m->tensors[t];

		row = find(p, tensor);
		if (row == p->csv.nrows)
			return gf_error_set(
				err, -EINVAL,
				"%s: no parameter is left for gradient %zu, of %zu elements",
				source, t, tensor->count_elems);
		tensor->count_elems = p->left[row];
		p->left[row] = 0;
		free(tensor->name);
		tensor->name = gf_xstrdup(gf_csv_field(&p->csv, row, p->name));
	}
	return 0;
}

int gf_import_names(const struct gf_import *in, struct gf_model_profile *m, struct gf_error *err)
{
	struct parameters p = {0};
	size_t row;
	int rc = gf_csv_read(in->parameters, strlen(in->parameters), source, &p.csv, err);

	if (rc < 0)
		return rc;
	rc = gf_csv_need(&p.csv, "name", &p.name, err);
	if (rc == 0)
		rc = gf_csv_need(&p.csv, "count_elems", &p.elems, err);
	if (rc == 0) {
		p.left = gf_xcalloc(p.csv.nrows + 1, sizeof(*p.left));
		for (row = 0; row < p.csv.nrows; row++)
			p.left[row] = strtoull(gf_csv_field(&p.csv, row, p.elems), NULL, 10);
		rc = name_all(&p, m, err);
		free(p.left);
	}
	gf_csv_release(&p.csv);
	return rc;
}
