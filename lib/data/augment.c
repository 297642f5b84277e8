/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/augment.h"

#include <string.h>

#include "base/rng.h"
#include "base/units.h"

/* Sample i in epoch e draws from stream AUGMENT + e * count + i of the seed. */
#define STREAM_AUGMENT 0x4155474d00000000u
#define CROP           "crop:"
#define MAX_PAD        1024
#define RESIZED        "resized-crop"
#define RESIZED_AREA   0.08 /* Szegedy et al. 2015 */
#define MIN_AREA       1e-4

static int refuse(const char *item, struct gf_error *err)
{
	return gf_error_set(err, -EINVAL, "want none, flip, crop:N or " RESIZED ", got \"%.60s\"",
			    item);
}

static int parse_area(const char *item, struct gf_augment *a, struct gf_error *err)
{
	const char *text = item + strlen(RESIZED);
	struct gf_error reason;

	a->area = RESIZED_AREA;
	if (!*text)
		return 0;
	if (*text != ':')
		return refuse(item, err);
	if (!gf_units_real(text + 1, MIN_AREA, 1, &a->area, &reason))
		return 0;
	return gf_error_set(err, -EINVAL, RESIZED ": %s", reason.text);
}

static int parse_item(const char *item, struct gf_augment *a, struct gf_error *err)
{
	struct gf_error reason;
	long long pad;

	if (strcmp(item, "flip") == 0) {
		a->flip = true;
		return 0;
	}
	if (strncmp(item, RESIZED, strlen(RESIZED)) == 0)
		return parse_area(item, a, err);
	if (strncmp(item, CROP, strlen(CROP)) != 0)
		return refuse(item, err);
	if (gf_units_int(item + strlen(CROP), 1, MAX_PAD, &pad, &reason))
		return gf_error_set(err, -EINVAL, "crop: %s", reason.text);
	a->pad = (size_t)pad;
	return 0;
}

int gf_augment_parse(const char *text, struct gf_augment *a, struct gf_error *err)
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

int gf_augment_check(const struct gf_augment *a, const struct gf_dataset *d, struct gf_error *err)
{
	const struct gf_shape *s = &d->shape;

	if (a->area > 0 && !d->format->crops)
		return gf_error_set(err, -EINVAL,
				    "--augment " RESIZED
				    ": want pictures that are cropped (jpeg), the data are %s "
				    "(--augment none leaves them as they are)",
				    d->format->name);
	if (!a->flip && !a->pad)
		return 0;
	if (d->vocabulary || s->rank != 3)
		return gf_error_set(
			err, -EINVAL,
			"--augment: want images of channels, height and width, the data are %s",
			d->vocabulary ? "text" : "flat");
	if (a->pad >= s->dims[1] || a->pad >= s->dims[2])
		return gf_error_set(err, -EINVAL,
				    "--augment: want to crop by less than the images' %zu x %zu "
				    "pixels, got %zu",
				    s->dims[1], s->dims[2], a->pad);
	return 0;
}

/* Pixel (y, x) comes from (y + down, x + right), counted from the right edge if mirrored; from
 * outside it is 0. */
struct view {
	long down, right;
	bool mirrored;
};

/* Row by row: what lies inside is copied, forwards or backwards. */
static void look(const struct gf_shape *s, const struct view *v, const float *from, float *to)
{
	const long high = (long)s->dims[1], wide = (long)s->dims[2];
	const long channels = (long)s->dims[0];
	const long first = v->right < 0 ? 0 : v->right;
	const long last = v->right < 0 ? wide + v->right : wide;
	long row, x;

	for (row = 0; row < channels * high; row++, to += wide) {
		const long y = row % high + v->down;

		memset(to, 0, (size_t)wide * sizeof(*to));
		for (x = first; y >= 0 && y < high && x < last; x++)
			to[v->mirrored ? wide - 1 - (x - v->right) : x - v->right] =
				from[(row + v->down) * wide + x];
	}
}

int gf_augment_sample(const struct gf_augment *a, const struct gf_dataset *d,
		      const struct gf_augmented *which, float *values, int32_t *labels,
		      struct gf_error *err)
{
	struct gf_rng rng;
	struct gf_draw draw = {GF_PART_TRAIN, which->index, a->area, &rng};
	struct view v = {0};
	int rc;

	gf_rng_init(&rng, which->seed,
		    STREAM_AUGMENT + which->epoch * d->count[GF_PART_TRAIN] + which->index);
	if (a->flip)
		v.mirrored = gf_rng_below(&rng, 2);
	if (a->pad) {
		v.down = (long)gf_rng_below(&rng, 2 * a->pad + 1);
		v.right = (long)gf_rng_below(&rng, 2 * a->pad + 1);
		v.down -= (long)a->pad;
		v.right -= (long)a->pad;
	}
	if (!v.mirrored && !v.down && !v.right)
		return d->format->sample(d, &draw, values, labels, err);
	rc = d->format->sample(d, &draw, which->room, labels, err);
	if (!rc)
		look(&d->shape, &v, which->room, values);
	return rc;
}
