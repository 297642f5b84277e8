/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_DATA_PARTS_H
#define GF_DATA_DATA_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "base/error.h"
#include "base/array.h"

/*
 * One file of a data set, plain or compressed by gzip, read from front to back. A size that a file
 * states about itself is not trusted: memory grows with the bytes that are really there. Errors
 * name the file; a truncated, damaged or swollen gzip stream is -EINVAL, and so is what is no
 * regular file (private to lib/data).
 */
struct gf_source {
	char *path; /* owned */
	void *stream;
};

/* Nothing that fits beside a model on one host is larger. */
#define GF_SOURCE_MAX_BYTES ((size_t)1 << 36)

/* <folder>/<name>, or <folder>/<name>.gz if only that exists; NULL if neither does. The caller
 * frees. */
char *gf_source_find(const char *folder, const char *name);

/* Takes the path, also when it fails; gf_source_close in any case. */
int gf_source_open(struct gf_source *s, char *path, struct gf_error *err);
void gf_source_close(struct gf_source *s);

/* Up to want bytes; fewer at the end of the file. */
int gf_source_read(struct gf_source *s, void *out, size_t want, size_t *got, struct gf_error *err);
/* Exactly total bytes (> 0) and then the end; the caller frees. */
int gf_source_exactly(struct gf_source *s, size_t total, unsigned char **bytes,
		      struct gf_error *err);
/* Reads the rest; *bytes is never NULL on success, and the caller's to free. */
int gf_source_rest(struct gf_source *s, unsigned char **bytes, size_t *size, struct gf_error *err);

/*
 * The common part of the formats of byte images: a dataset's priv points to one of these (private
 * to lib/data). Bytes and labels are allocated with malloc.
 */
struct gf_images {
	unsigned char *bytes[GF_PARTS];
	int32_t *labels[GF_PARTS];
	/* of each byte: a row of 256 per channel, or one for all of them */
	float (*value)[256];
	size_t nvalues;
};

/* One of the d->count[part] labels of `file` by its number; want->classes 0: any. Raises
 * d->classes. */
int gf_images_label(struct gf_dataset *d, enum gf_part part, size_t index, long long label,
		    const struct gf_dataset_want *want, const char *file, struct gf_error *err);

/* Callbacks of a format. */
int gf_images_sample(const struct gf_dataset *d, const struct gf_draw *draw, float *values,
		     int32_t *label, struct gf_error *err);
void gf_images_close(struct gf_dataset *d);

/* A text, and its numbers from 0, as text_data.c reads and cuts it. */
struct gf_text_parts {
	unsigned char *bytes[GF_PARTS];
	size_t size[GF_PARTS];
	int32_t *numbers[GF_PARTS];
	size_t length[GF_PARTS]; /* of numbers */
};

/* Numbers the words, at most `limit` (>= 1) and "<unk>" among them, which stands for every other
 * one (vocabulary.c). */
int gf_words_number(const char *folder, struct gf_text_parts *t, size_t limit, size_t *vocabulary,
		    struct gf_error *err);

/*
 * Masked words, for a model that reads ahead (Devlin et al. 2019, "BERT", section 3.1). The model
 * is asked for 15 % of a sample's numbers, at least one, and the other positions have no label. Of
 * these numbers 80 % are replaced by the mask, 10 % by any number, and 10 % stay.
 *
 * What is masked depends on the seed, the epoch and the sample alone, as augmentation does. All
 * samples have equally many labels, so that a mean over the samples of all ranks is the mean over
 * their labels.
 */

/* One sample, in place; its labels become the numbers that were masked. The mask is d->vocabulary,
 * the number after the text's own. Other data stay. The test part is masked the same in each
 * epoch. */
void gf_mask_sample(const struct gf_dataset *d, enum gf_part part, uint64_t seed, size_t epoch,
		    size_t index, float *values, int32_t *labels);

/*
 * The window of a picture that a sample shows, and how its pixels become the sample's values
 * (private to lib/data).
 */
struct gf_crop {
	double left, top, width, height; /* in pixels */
};

/* AT RANDOM, torchvision's RandomResizedCrop (Szegedy et al. 2015): of a share of the area between
 * draw->area and 1, and of width / height between 3/4 and 4/3, evenly in its logarithm; where ten
 * tries do not fit, the largest window in the middle whose ratio lies there.
 * THE MIDDLE, as for tests of ImageNet: 224/256 of the largest window that has the ratio of `width`
 * to `height`. */
struct gf_crop gf_crop_draw(const struct gf_draw *draw, size_t picture_width, size_t picture_height,
			    size_t width, size_t height);

/* What a sample wants: byte b of channel c becomes gain[c] * b + offset[c]. */
struct gf_picture_want {
	size_t width, height;
	float gain[3], offset[3];
};

/*
 * A JPEG file's window as a sample's values, by libjpeg-turbo (private to lib/data). No more is
 * decoded than the window's rows and blocks, at 1/8, 1/4 or 1/2 of the size where that leaves as
 * many pixels as are wanted. Grey and CMYK pictures become RGB, those with Adobe's mark from
 * inverted inks. A file that is damaged in what is decoded, or ends early, is -EINVAL, and so is
 * one of more than 2^27 pixels, or 100 scans: small files can be slow ones.
 */
typedef int gf_jpeg_reader(const char *path, const struct gf_draw *draw,
			   const struct gf_picture_want *want, float *values, struct gf_error *err);
gf_jpeg_reader gf_jpeg_read;

/* That, or NULL in a build without libjpeg-turbo (jpeg_reader.c). */
extern gf_jpeg_reader *const gf_data_jpeg_reader;

#endif
