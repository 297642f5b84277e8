/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/augment.h"

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "base/units.h"

/* Sample i in epoch e draws from stream AUGMENT + e * count + i of the seed. */
#define STREAM_AUGMENT 0x4155474d00000000u
#define CROP           "crop:"
#define MAX_PAD        1024

static int parse_item(const char *item, struct gf_augment *a,
		      struct gf_error *err)
{
	struct gf_error reason;
	long long pad;

	if (strcmp(item, "flip") == 0) {
		a->flip = true;
		return 0;
	}
	if (strncmp(item, CROP, strlen(CROP)) != 0)
		return gf_error_set(err, -EINVAL,
				    "want none, flip or crop:N, got \"%.60s\"",
				    item);
	if (gf_units_int(item + strlen(CROP), 1, MAX_PAD, &pad, &reason))
		return gf_error_set(err, -EINVAL, "crop: %s", reason.text);
	a->pad = (size_t)pad;
	return 0;
}

int gf_augment_parse(const char *text, struct gf_augment *a,
		     struct gf_error *err)
{
	struct gf_augment parsed = {0};
	char item[64];
	size_t n;
	int rc = 0;

	if (strcmp(text, "none") != 0) {
		for (; !rc; text += n + 1) {
			n = strcspn(text, ",");
			if (n >= sizeof(item))
				n = sizeof(item) - 1;
			memcpy(item, text, n);
			item[n] = '\0';
			rc = parse_item(item, &parsed, err);
			if (!text[n])
				break;
		}
	}
	if (!rc)
		*a = parsed;
	return rc;
}

int gf_augment_check(const struct gf_augment *a, const struct gf_dataset *d,
		     struct gf_error *err)
{
	const struct gf_shape *s = &d->shape;

	if (!a->flip && !a->pad)
		return 0;
	if (d->vocabulary || s->rank != 3)
		return gf_error_set(
			err, -EINVAL,
			"--augment: want images of channels, height "
			"and width, the data are %s",
			d->vocabulary ? "text" : "flat");
	if (a->pad >= s->dims[1] || a->pad >= s->dims[2])
		return gf_error_set(err, -EINVAL,
				    "--augment: want to crop by less than the "
				    "images' %zu x %zu pixels, got %zu",
				    s->dims[1], s->dims[2], a->pad);
	return 0;
}

/* Pixel (y, x) comes from (y + down, x + right), counted from the right edge
 * if mirrored; from outside it is 0. */
struct view {
	long down, right;
	bool mirrored;
};

static void look(const struct gf_shape *s, const struct view *v,
		 const float *from, float *to)
{
	const long high = (long)s->dims[1], wide = (long)s->dims[2];
	size_t channel;
	long y, x;

	for (channel = 0; channel < s->dims[0]; channel++)
		for (y = 0; y < high; y++)
			for (x = 0; x < wide; x++) {
				long row = y + v->down;
				long column = v->right +
					      (v->mirrored ? wide - 1 - x : x);
				bool inside = row >= 0 && row < high &&
					      column >= 0 && column < wide;

				*to++ = inside ? from[((long)channel * high +
						       row) * wide +
						      column]
					       : 0;
			}
}

void gf_augment_sample(const struct gf_augment *a, const struct gf_dataset *d,
		       uint64_t seed, size_t epoch, size_t index, float *values,
		       float *room)
{
	size_t n = gf_shape_elems(&d->shape);
	struct view v = {0};
	struct gf_rng rng;

	if (!a->flip && !a->pad)
		return;
	gf_rng_init(&rng, seed,
		    STREAM_AUGMENT + epoch * d->count[GF_PART_TRAIN] + index);
	if (a->flip)
		v.mirrored = gf_rng_below(&rng, 2);
	if (a->pad) {
		v.down = (long)gf_rng_below(&rng, 2 * a->pad + 1);
		v.right = (long)gf_rng_below(&rng, 2 * a->pad + 1);
		v.down -= (long)a->pad;
		v.right -= (long)a->pad;
	}
	memcpy(room, values, n * sizeof(*room));
	look(&d->shape, &v, room, values);
}
