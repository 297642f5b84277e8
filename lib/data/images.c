/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <stdlib.h>

int gf_images_label(struct gf_dataset *d, enum gf_part part, size_t index, long long label,
		    const struct gf_dataset_want *want, const char *file, struct gf_error *err)
{
	struct gf_images *m = d->priv;

	if (want->classes && (label < 0 || label >= (long long)want->classes))
		return gf_error_set(err, -EINVAL, "%s: want labels of 0 to %zu, label %zu is %lld",
				    file, want->classes - 1, index, label);
	if (label < 0 || label > INT32_MAX - 1)
		return gf_error_set(err, -EINVAL,
				    "%s: want labels of 0 to 2^31 - 2, label %zu is %lld", file,
				    index, label);
	m->labels[part][index] = (int32_t)label;
	if ((size_t)label >= d->classes)
		d->classes = (size_t)label + 1;
	return 0;
}

int gf_images_sample(const struct gf_dataset *d, const struct gf_draw *draw, float *values,
		     int32_t *label, struct gf_error *err)
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

	if (!m)
		return;
	for (int part = 0; part < GF_PARTS; part++) {
		free(m->bytes[part]);
		free(m->labels[part]);
	}
	free(m->value);
	free(m);
}
