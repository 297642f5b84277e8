/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_DATASET_H
#define GF_DOC_DATASET_H

#include <stddef.h>

#include "base/error.h"
#include "json/json.h"
#include "doc/model.h"

/*
 * gf-data: what lies in files of raw image bytes and of labels (gf-data(5)).
 * The files are beside the document, named without a folder.
 */
struct gf_data_part {
	size_t count; /* images, and labels */
	char *images, *labels;
	char *extra;
};

struct gf_data_header {
	char *producer;
	char *name;
	struct gf_shape shape; /* of an image: {C, H, W} or {F} */
	size_t classes;
	size_t max_byte; /* what becomes 1 */
	/* What is taken from, and divides, the values of a channel after that;
	 * neither, or one per channel ({F} and {H, W} have one). */
	double *mean, *deviation;
	size_t nmean, ndeviation;
	size_t label_bytes; /* 1, 2 or 4 each, little-endian */
	struct gf_data_part *train, *test;
	char *extra;
};

int gf_data_header_read(const struct gf_json *root, const char *file,
			struct gf_data_header *h, struct gf_error *err);
void gf_data_header_release(struct gf_data_header *h);

#endif
