/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_DATASET_H
#define GF_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "doc/model.h"

/*
 * Labelled samples for classification, in memory, in two parts. A format is
 * one file (idx.c, synthetic.c, ...) and one entry in registry.c.
 *
 * VALUES. A byte v becomes v / max, max being the largest byte of the training
 * part: inputs lie in [0, 1] whatever range the bytes use (0..255, 0..16), and
 * the test part is scaled like the training part.
 */
enum gf_part { GF_PART_TRAIN, GF_PART_TEST, GF_PARTS };
extern const char *const gf_part_names[]; /* train test */

/* What the model at hand can take. */
struct gf_dataset_want {
	struct gf_shape input; /* rank 0: any */
	size_t classes;        /* labels must be below; 0: any */
	uint64_t seed;         /* for data that is made up */
};

struct gf_dataset;

struct gf_data_format {
	const char *name;
	const char *description; /* one line */
	/* 1 if `path` names data of this format, 0 if not; opens nothing big */
	int (*recognise)(const char *path);
	/* Fills shape, count and classes. Errors name the file. */
	int (*open)(const char *path, const struct gf_dataset_want *want,
		    struct gf_dataset *d, struct gf_error *err);
	/* The scaled values (gf_shape_elems of them) and the label. */
	void (*sample)(const struct gf_dataset *d, enum gf_part part,
		       size_t index, float *values, uint8_t *label);
	/* Accepts a dataset whose open failed half-way. */
	void (*close)(struct gf_dataset *d);
};

struct gf_dataset {
	const struct gf_data_format *format;
	struct gf_shape shape; /* of one sample: {C, H, W} or {F} */
	size_t count[GF_PARTS];
	size_t classes; /* largest label + 1 */
	void *priv;
};

extern const struct gf_data_format *const gf_data_formats[]; /* NULL-ended */

/* Opens a folder or a made-up set ("synthetic", "synthetic:4096"), and checks
 * it against what the model wants: a flat model input takes any shape of as
 * many elements, any other must agree in every dimension. */
int gf_dataset_open(const char *path, const struct gf_dataset_want *want,
		    struct gf_dataset *d, struct gf_error *err);
void gf_dataset_close(struct gf_dataset *d);

/* Samples indices[0..n-1] one after the other. */
void gf_dataset_batch(const struct gf_dataset *d, enum gf_part part,
		      const size_t *indices, size_t n, float *values,
		      uint8_t *labels);

#endif
