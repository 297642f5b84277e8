/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/jpeg.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/rng.h"

#define TRIES        10
#define RATIO        (4.0 / 3) /* and its inverse */
#define MIDDLE_SHARE (224.0 / 256)

/* --- which window --------------------------------------------------------- */

static struct gf_crop centred(double picture_width, double picture_height,
			      double width, double height)
{
	return (struct gf_crop){(picture_width - width) / 2,
				(picture_height - height) / 2, width, height};
}

/* The largest one of a ratio, times `share`. */
static struct gf_crop middle(double width, double height, double ratio,
			     double share)
{
	const double most = width < height * ratio ? width : height * ratio;

	return centred(width, height, share * most, share * most / ratio);
}

static double between(struct gf_rng *rng, double low, double high)
{
	return low + (high - low) * gf_rng_uniform(rng);
}

static struct gf_crop at_random(const struct gf_draw *draw, size_t width,
				size_t height)
{
	const double area = (double)width * (double)height;
	double ratio = (double)width / (double)height;
	int i;

	for (i = 0; i < TRIES; i++) {
		double share = area * between(draw->rng, draw->area, 1);
		double r = exp(between(draw->rng, -log(RATIO), log(RATIO)));
		size_t w = (size_t)round(sqrt(share * r));
		size_t h = (size_t)round(sqrt(share / r));

		if (w > 0 && w <= width && h > 0 && h <= height)
			return (struct gf_crop){
				(double)gf_rng_below(draw->rng, width - w + 1),
				(double)gf_rng_below(draw->rng, height - h + 1),
				(double)w, (double)h};
	}
	ratio = fmin(fmax(ratio, 1 / RATIO), RATIO);
	return middle((double)width, (double)height, ratio, 1);
}

struct gf_crop gf_crop_draw(const struct gf_draw *draw, size_t picture_width,
			    size_t picture_height, size_t width, size_t height)
{
	if (draw->area > 0)
		return at_random(draw, picture_width, picture_height);
	return middle((double)picture_width, (double)picture_height,
		      (double)width / (double)height, MIDDLE_SHARE);
}

/* --- its values ----------------------------------------------------------- */

/* For each of the `count` results along an axis: its first pixel, how many, and
 * their weights, `most` places each. */
struct axis {
	size_t *first, *n;
	float *weights;
	size_t most;
};

static void weigh(struct axis *a, size_t i, double centre, double support,
		  size_t begin, size_t end)
{
	float *weights = a->weights + i * a->most;
	double sum = 0;
	size_t k;

	for (k = begin; k < end; k++)
		sum += fmax(0, 1 - fabs((double)k + .5 - centre) / support);
	for (k = begin; k < end; k++)
		weights[k - begin] =
			(float)(fmax(0, 1 - fabs((double)k + .5 - centre) /
							support) /
				sum);
	a->first[i] = begin;
	a->n[i] = end - begin;
}

/* Pixels beside the window, or beyond the `pixels` there are, count for
 * nothing. */
static void axis_init(struct axis *a, double from, double length, size_t pixels,
		      size_t count)
{
	const double scale = length / (double)count, support = fmax(scale, 1);
	const double low = floor(from);
	const double high = fmin(ceil(from + length), (double)pixels);
	size_t i;

	a->most = (size_t)ceil(2 * support) + 2;
	a->first = gf_xcalloc(count, sizeof(*a->first));
	a->n = gf_xcalloc(count, sizeof(*a->n));
	a->weights = gf_xcalloc(count * a->most, sizeof(*a->weights));
	for (i = 0; i < count; i++) {
		double centre = from + ((double)i + .5) * scale;

		weigh(a, i, centre, support,
		      (size_t)fmax(low, floor(centre - support + .5)),
		      (size_t)fmin(high, floor(centre + support + .5)));
	}
}

static void axis_release(struct axis *a)
{
	free(a->first);
	free(a->n);
	free(a->weights);
}

/* Rows become one. Steps of a fixed length, which compilers make vectors of. */
static void mix_rows(const struct gf_pixels *p, const struct axis *down,
		     size_t y, float *row)
{
	const unsigned char *bytes = p->bytes + down->first[y] * p->stride;
	const float *weights = down->weights + y * down->most;
	size_t x, i, k;

	for (x = 0; x < p->stride; x += GF_PIXELS_STEP) {
		float sum[GF_PIXELS_STEP] = {0};

		for (k = 0; k < down->n[y]; k++)
			for (i = 0; i < GF_PIXELS_STEP; i++)
				sum[i] += weights[k] *
					  (float)bytes[k * p->stride + x + i];
		for (i = 0; i < GF_PIXELS_STEP; i++)
			row[x + i] = sum[i];
	}
}

static void mix_columns(const float *row, const struct axis *across,
			const struct gf_picture_want *want, float *values)
{
	const size_t plane = want->width * want->height;
	size_t x, k, c;

	for (x = 0; x < want->width; x++) {
		const float *at = row + 3 * across->first[x];
		const float *weights = across->weights + x * across->most;
		float sum[3] = {0};

		for (k = 0; k < across->n[x]; k++, at += 3)
			for (c = 0; c < 3; c++)
				sum[c] += weights[k] * at[c];
		for (c = 0; c < 3; c++)
			values[c * plane + x] =
				want->gain[c] * sum[c] + want->offset[c];
	}
}

void gf_crop_values(const struct gf_pixels *p, const struct gf_crop *w,
		    const struct gf_picture_want *want, float *values)
{
	float *row = gf_xcalloc(p->stride, sizeof(*row));
	struct axis across, down;
	size_t y;

	axis_init(&across, w->left, w->width, p->width, want->width);
	axis_init(&down, w->top, w->height, p->height, want->height);
	for (y = 0; y < want->height; y++) {
		mix_rows(p, &down, y, row);
		mix_columns(row, &across, want, values + y * want->width);
	}
	axis_release(&across);
	axis_release(&down);
	free(row);
}
