/* SPDX-License-Identifier: BSD-3-Clause */
/* What samples of JPEG files show. */
#include "jpeg_files.h"

#include "base/array.h"
#include "base/rng.h"
#include "data/data_parts.h"

/* --- what a sample shows -------------------------------------------------- */

/* JPEG's own rounding, in 255ths; at the window's edge pixels beside it lack.
 */
#define NEAR 4.0
#define EDGE 3

static double byte_of(float value, int channel)
{
	static const double mean[] = {0.485, 0.456, 0.406};
	static const double deviation[] = {0.229, 0.224, 0.225};

	return 255 * ((double)value * deviation[channel] + mean[channel]);
}

static void expect_window(const char *label, const struct picture *p, const struct gf_crop *w,
			  size_t width, size_t height, const float *values)
{
	double worst = 0;
	size_t x, y;
	int c;

	for (c = 0; c < 3; c++)
		for (y = EDGE; y < height - EDGE; y++)
			for (x = EDGE; x < width - EDGE; x++) {
				double u = w->left +
					   (double)(2 * x + 1) * w->width / (double)(2 * width);
				double v = w->top +
					   (double)(2 * y + 1) * w->height / (double)(2 * height);
				int like = p->space == JCS_GRAYSCALE ? 0 : c;
				double want = colour(like, u / p->width, v / p->height);
				float got = values[((size_t)c * height + y) * width + x];

				worst = fmax(worst, fabs(byte_of(got, c) - want));
			}
	EXPECT(worst < NEAR, "%s: off by %g of 255", label, worst);
}

static const struct {
	const char *label;
	struct picture picture;
	size_t width, height; /* of the sample */
} shown[] = {
	{"as large", {64, 64, LIGHT, JCS_YCbCr, false, 0}, 56, 56},
	{"shrunk", {500, 375, LIGHT, JCS_YCbCr, false, 0}, 224, 224},
	{"upright, at a half", {333, 601, LIGHT, JCS_YCbCr, false, 0}, 96, 96},
	{"at an eighth", {1203, 901, LIGHT, JCS_YCbCr, false, 0}, 64, 48},
	{"at an eighth and shrunk", {901, 1203, LIGHT, JCS_YCbCr, false, 0}, 24, 40},
	{"enlarged", {80, 60, LIGHT, JCS_YCbCr, false, 0}, 67, 67},
	{"a strip", {900, 20, LIGHT, JCS_YCbCr, false, 0}, 32, 32},
	{"progressive", {300, 200, LIGHT, JCS_YCbCr, true, 0}, 64, 64},
	{"RGB in the file", {300, 200, LIGHT, JCS_RGB, false, 0}, 64, 64},
	{"three scans", {300, 200, LIGHT, JCS_YCbCr, false, 3}, 64, 64},
	{"grey", {300, 200, LIGHT, JCS_GRAYSCALE, false, 0}, 64, 64},
	{"CMYK of Adobe", {300, 200, ADOBE, JCS_CMYK, false, 0}, 64, 64},
	{"YCCK of Adobe", {300, 200, ADOBE, JCS_YCCK, false, 0}, 64, 64},
	{"CMYK", {300, 200, PLAIN, JCS_CMYK, false, 0}, 64, 64},
};

#define DRAWS 12

/* The middle, and windows at random. */
static void test_shown(void)
{
	static const size_t zero = 0;
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(shown); i++) {
		const struct picture *p = &shown[i].picture;
		const size_t w = shown[i].width, h = shown[i].height;
		float *values = gf_xcalloc(3 * w * h, sizeof(*values));
		struct gf_dataset d;
		struct gf_error err;
		struct gf_crop window;
		struct gf_draw draw = {0};
		int32_t label;
		int rc;

		put_picture("train/a/1.JPEG", p);
		put_picture("val/a/1.jpg", p);
		rc = open_size(w, h, &d, &err);
		EXPECT(rc == 0, "%s: %s", shown[i].label, err.text);
		if (rc)
			continue;
		rc = gf_dataset_batch(&d, GF_PART_TEST, &zero, 1, values, &label, &err);
		EXPECT(rc == 0 && label == 0, "%s: %s", shown[i].label, err.text);
		window = gf_crop_draw(&draw, p->width, p->height, w, h);
		expect_window(shown[i].label, p, &window, w, h, values);
		for (k = 0; k < DRAWS; k++) {
			struct gf_rng rng, again;

			gf_rng_init(&rng, 7, k);
			again = rng;
			draw = (struct gf_draw){GF_PART_TRAIN, 0, 0.08, &rng};
			rc = d.format->sample(&d, &draw, values, &label, &err);
			EXPECT(rc == 0, "%s: %s", shown[i].label, err.text);
			draw.rng = &again;
			window = gf_crop_draw(&draw, p->width, p->height, w, h);
			expect_window(shown[i].label, p, &window, w, h, values);
		}
		gf_dataset_close(&d);
		free(values);
	}
	clear();
}

/* torchvision's rule: shares of the area and ratios stay in their bounds and come near both ends;
 * what cannot be met is the middle. */
static void test_windows(void)
{
	struct gf_rng rng;
	const struct gf_draw draw = {GF_PART_TRAIN, 0, 0.08, &rng};
	double low = 1, high = 0, narrow = 9, wide = 0;
	struct gf_crop w;
	size_t i;

	gf_rng_init(&rng, 3, 1);
	for (i = 0; i < 5000; i++) {
		double share, ratio;

		w = gf_crop_draw(&draw, 500, 400, 224, 224);
		share = w.width * w.height / (500 * 400);
		ratio = w.width / w.height;
		low = fmin(low, share);
		high = fmax(high, share);
		narrow = fmin(narrow, ratio);
		wide = fmax(wide, ratio);
		EXPECT(w.left >= 0 && w.left + w.width <= 500 && w.top >= 0 &&
			       w.top + w.height <= 400,
		       "%g %g", w.left, w.top);
	}
	EXPECT(low > .079 && low < .09 && high > .95 && high <= 1, "%g to %g", low, high);
	EXPECT(narrow > .74 && narrow < .76 && wide > 1.32 && wide < 1.35, "%g to %g", narrow,
	       wide);
	w = gf_crop_draw(&draw, 1000, 3, 224, 224);
	EXPECT(w.top == 0 && w.height == 3 && fabs(w.width - 4) < 1e-9 && fabs(w.left - 498) < 1e-9,
	       "%g %g %g %g", w.left, w.top, w.width, w.height);
}

int main(void)
{
	make_folder("test_jpeg");
	test_shown();
	test_windows();
	return TEST_END();
}
