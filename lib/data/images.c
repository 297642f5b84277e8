/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/images.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

void gf_images_scale(const struct gf_dataset *d, unsigned max)
{
	struct gf_images *m = d->priv;
	size_t total = d->count[GF_PART_TRAIN] * gf_shape_elems(&d->shape), i;
	const unsigned char *bytes = m->bytes[GF_PART_TRAIN];

	if (!max)
		for (i = 0; i < total; i++)
			max = bytes[i] > max ? bytes[i] : max;
	for (i = 0; i < 256; i++)
		m->value[i] = (float)i / (float)(max ? max : 1);
}

int gf_images_label(struct gf_dataset *d, enum gf_part part, size_t index,
		    size_t label, const struct gf_dataset_want *want,
		    const char *file, struct gf_error *err)
{
	struct gf_images *m = d->priv;

	if (want->classes && label >= want->classes)
		return gf_error_set(err, -EINVAL,
				    "%s: want labels below %zu, label %zu is "
				    "%zu",
				    file, want->classes, index, label);
	if (label > INT32_MAX - 1)
		return gf_error_set(err, -EINVAL,
				    "%s: want labels below 2^31 - 1, label %zu "
				    "is %zu",
				    file, index, label);
	m->labels[part][index] = (int32_t)label;
	if (label + 1 > d->classes)
		d->classes = label + 1;
	return 0;
}

void gf_images_sample(const struct gf_dataset *d, enum gf_part part,
		      size_t index, float *values, int32_t *label)
{
	const struct gf_images *m = d->priv;
	size_t n = gf_shape_elems(&d->shape), i;
	const unsigned char *bytes = m->bytes[part] + index * n;

	for (i = 0; i < n; i++)
		values[i] = m->value[bytes[i]];
	*label = m->labels[part][index];
}

void gf_images_close(struct gf_dataset *d)
{
	struct gf_images *m = d->priv;
	int part;

	if (!m)
		return;
	for (part = 0; part < GF_PARTS; part++) {
		if (m->mapped_bytes[part])
			munmap(m->bytes[part], m->mapped_bytes[part]);
		else
			free(m->bytes[part]);
		free(m->labels[part]);
	}
	free(m);
}
