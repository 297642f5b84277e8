/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"

/* C of {C, H, W}; else 1. */
static size_t channels_of(const struct gf_shape *s)
{
	return s->rank == 3 ? s->dims[0] : 1;
}

static void allocate_values(struct gf_images *m, size_t n)
{
	m->value = gf_xcalloc(n, sizeof(*m->value));
	m->nvalues = n;
}

void gf_images_scale(const struct gf_dataset *d)
{
	struct gf_images *m = d->priv;
	size_t total = d->count[GF_PART_TRAIN] * gf_shape_elems(&d->shape), i;
	const unsigned char *bytes = m->bytes[GF_PART_TRAIN];
	unsigned max = 0;

	for (i = 0; i < total; i++)
		max = bytes[i] > max ? bytes[i] : max;
	allocate_values(m, 1);
	for (i = 0; i < 256; i++)
		m->value[0][i] = (float)i / (float)(max ? max : 1);
}

void gf_images_normalise(const struct gf_dataset *d, unsigned max,
			 const double *mean, const double *deviation)
{
	struct gf_images *m = d->priv;
	size_t c, i;

	allocate_values(m, channels_of(&d->shape));
	for (c = 0; c < m->nvalues; c++)
		for (i = 0; i < 256; i++)
			m->value[c][i] =
				(float)(((double)i / (double)max - mean[c]) /
					deviation[c]);
}

void gf_images_statistics(const struct gf_dataset *d, unsigned max,
			  double *mean, double *deviation)
{
	const struct gf_images *m = d->priv;
	size_t channels = channels_of(&d->shape);
	size_t plane = gf_shape_elems(&d->shape) / channels, c, i, k;
	const unsigned char *at = m->bytes[GF_PART_TRAIN];
	size_t(*seen)[256] = gf_xcalloc(channels, sizeof(*seen));

	for (i = 0; i < d->count[GF_PART_TRAIN]; i++)
		for (c = 0; c < channels; c++, at += plane)
			for (k = 0; k < plane; k++)
				seen[c][at[k]]++;
	for (c = 0; c < channels; c++) {
		double n = (double)(d->count[GF_PART_TRAIN] * plane);
		double sum = 0, square = 0, off;

		for (i = 0; i < 256; i++)
			sum += (double)(seen[c][i] * i);
		for (i = 0; i < 256; i++) {
			off = (double)i - sum / n;
			square += (double)seen[c][i] * off * off;
		}
		mean[c] = sum / n / max;
		deviation[c] = square > 0 ? sqrt(square / n) / max : 1;
	}
	free(seen);
}

int gf_images_label(struct gf_dataset *d, enum gf_part part, size_t index,
		    long long label, const struct gf_dataset_want *want,
		    const char *file, struct gf_error *err)
{
	struct gf_images *m = d->priv;

	if (want->classes && (label < 0 || label >= (long long)want->classes))
		return gf_error_set(err, -EINVAL,
				    "%s: want labels of 0 to %zu, label %zu is "
				    "%lld",
				    file, want->classes - 1, index, label);
	if (label < 0 || label > INT32_MAX - 1)
		return gf_error_set(err, -EINVAL,
				    "%s: want labels of 0 to 2^31 - 2, label "
				    "%zu is %lld",
				    file, index, label);
	m->labels[part][index] = (int32_t)label;
	if ((size_t)label >= d->classes)
		d->classes = (size_t)label + 1;
	return 0;
}

int gf_images_sample(const struct gf_dataset *d, const struct gf_draw *draw,
		     float *values, int32_t *label, struct gf_error *err)
{
	const struct gf_images *m = d->priv;
	size_t n = gf_shape_elems(&d->shape), plane = n / m->nvalues, c, i;
	const unsigned char *bytes = m->bytes[draw->part] + draw->index * n;

	(void)err;
	for (c = 0; c < m->nvalues; c++)
		for (i = 0; i < plane; i++)
			*values++ = m->value[c][*bytes++];
	*label = m->labels[draw->part][draw->index];
	return 0;
}

void gf_images_close(struct gf_dataset *d)
{
	struct gf_images *m = d->priv;
	int part;

	if (!m)
		return;
	for (part = 0; part < GF_PARTS; part++) {
		free(m->bytes[part]);
		free(m->labels[part]);
	}
	free(m->value);
	free(m);
}
