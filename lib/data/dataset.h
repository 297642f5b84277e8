/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/data: labelled samples: readers of formats, order, augmentation, loaders. */
#ifndef GF_DATA_DATASET_H
#define GF_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "documents/models/model.h"

/*
 * Labelled samples in two parts. A format is one file (idx.c, text_data.c, ...) that recognises a
 * folder, opens it and hands out samples, with an entry, gf_data_NAME; a MANUAL comment for
 * gf-data(5); hostile files in tests/unit/test_data_*.c.
 *
 * IMAGES have one label each. A byte v becomes v / max, where max is the largest byte of the
 * training part unless the data says another: inputs lie in [0, 1] whatever range the bytes use
 * (0..255, 0..16), and the test part is scaled like the training part.
 *
 * TEXT is a row of numbers below `vocabulary`, cut into samples of as many numbers as the model
 * reads; each position's label is the next number. For a model that reads ahead some numbers are
 * masked instead (data/data_parts.h).
 */
enum gf_part { GF_PART_TRAIN, GF_PART_TEST, GF_PARTS };
extern const char *const gf_part_names[]; /* train test */

/* The samples that the model at hand can take. */
struct gf_dataset_want {
	struct gf_shape input; /* rank 0: any */
	size_t classes;        /* labels must be below; 0: any */
	size_t positions;      /* labels per sample; 0: any */
	size_t vocabulary;     /* samples are numbers below it; 0: values */
	bool masked;           /* text: numbers are masked */
	uint64_t seed;         /* for data that is made up */
};

struct gf_dataset;
struct gf_rng;

/* Which sample, and of a picture which window: at random one of `area` (its least share) to all of
 * it, or the middle. */
struct gf_draw {
	enum gf_part part;
	size_t index;
	double area;        /* of formats that crop; 0: the middle */
	struct gf_rng *rng; /* decides then */
};

struct gf_data_format {
	const char *name;        /* also what --data NAME:FOLDER says */
	const char *description; /* one line */
	unsigned place;          /* in listings, ascending (lib/list.sh); so they are asked, too */
	/* 1 if `path` names data of this format, 0 if not; opens nothing big */
	int (*recognise)(const char *path);
	/* Fills what is above priv. Errors name the file. */
	int (*open)(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
		    struct gf_error *err);
	/* The values (gf_shape_elems of them) and the d->positions labels. Called from several
	 * threads. Errors name the file. */
	int (*sample)(const struct gf_dataset *d, const struct gf_draw *draw, float *values,
		      int32_t *labels, struct gf_error *err);
	/* Accepts a dataset whose open failed half-way. */
	void (*close)(struct gf_dataset *d);
	bool crops; /* sample heeds the draw's window */
};

struct gf_dataset {
	const struct gf_data_format *format;
	struct gf_shape shape; /* of one sample: {C, H, W}, {F} or {T} */
	size_t count[GF_PARTS];
	size_t positions;  /* labels of one sample, */
	size_t masked;     /* if not 0 GF_NO_LABEL but for so many */
	size_t classes;    /* all labels lie below */
	size_t vocabulary; /* text: all values lie below; else 0 */
	/* Sample i + 1 goes on where sample i ends: an epoch reads rows of them in order
	 * (data/loader.h). */
	bool consecutive;
	void *priv;
};

extern const struct gf_data_format *const gf_data_formats[]; /* NULL-ended */

/* Opens a folder ("digits"), a folder of a format ("cifar10:pictures") or a made-up set
 * ("synthetic", "synthetic:4096"), and checks it against what the model wants: a flat model input
 * takes any shape of as many elements, any other must agree in every dimension. */
int gf_dataset_open(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
		    struct gf_error *err);
void gf_dataset_close(struct gf_dataset *d);

/* Positions of a sample that have a label. */
size_t gf_dataset_labels(const struct gf_dataset *d);

/* The folder in `path`, without a format's name and colon before it. */
const char *gf_dataset_folder(const char *path);

/* Samples indices[0..n-1] one after the other, as they are: not masked. */
int gf_dataset_batch(const struct gf_dataset *d, enum gf_part part, const size_t *indices, size_t n,
		     float *values, int32_t *labels, struct gf_error *err);

#endif
