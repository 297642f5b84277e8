/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/rng.h"

#define TRIES        10
#define RATIO        (4.0 / 3) /* and its inverse */
#define MIDDLE_SHARE (224.0 / 256)

/* Red, green and blue bytes of each pixel, row by row. */
struct pixels {
	unsigned char *bytes;
	size_t width, height;
	size_t stride; /* bytes of a row, a multiple of PIXELS_STEP */
};
#define PIXELS_STEP 16

/* --- which window --------------------------------------------------------- */

/* The largest one of a ratio, times `share`. */
static struct gf_crop middle(double width, double height, double ratio, double share)
{
	const double wide = share * (width < height * ratio ? width : height * ratio);
	const double high = wide / ratio;

	return (struct gf_crop){(width - wide) / 2, (height - high) / 2, wide, high};
}

static double between(struct gf_rng *rng, double low, double high)
{
	return low + (high - low) * gf_rng_uniform(rng);
}

static struct gf_crop at_random(const struct gf_draw *draw, size_t width, size_t height)
{
	const double area = (double)width * (double)height;
	double ratio = (double)width / (double)height;

	for (int i = 0; i < TRIES; i++) {
		double share = area * between(draw->rng, draw->area, 1);
		double r = exp(between(draw->rng, -log(RATIO), log(RATIO)));
		size_t w = (size_t)round(sqrt(share * r));
		size_t h = (size_t)round(sqrt(share / r));

		if (w > 0 && w <= width && h > 0 && h <= height)
			return (struct gf_crop){(double)gf_rng_below(draw->rng, width - w + 1),
						(double)gf_rng_below(draw->rng, height - h + 1),
						(double)w, (double)h};
	}
	ratio = fmin(fmax(ratio, 1 / RATIO), RATIO);
	return middle((double)width, (double)height, ratio, 1);
}

struct gf_crop gf_crop_draw(const struct gf_draw *draw, size_t picture_width, size_t picture_height,
			    size_t width, size_t height)
{
	if (draw->area > 0)
		return at_random(draw, picture_width, picture_height);
	return middle((double)picture_width, (double)picture_height, (double)width / (double)height,
		      MIDDLE_SHARE);
}

/* --- its values ----------------------------------------------------------- */

/* For each of the `count` results along an axis: its first pixel, how many, and their weights,
 * `most` places each. */
struct axis {
	size_t *first, *n;
	float *weights;
	size_t most;
};

static void weigh(struct axis *a, size_t i, double centre, double support, size_t begin, size_t end)
{
	float *weights = a->weights + i * a->most;
	double sum = 0;

	for (size_t k = begin; k < end; k++)
		sum += fmax(0, 1 - fabs((double)k + .5 - centre) / support);
	for (size_t k = begin; k < end; k++)
		weights[k - begin] =
			(float)(fmax(0, 1 - fabs((double)k + .5 - centre) / support) / sum);
	a->first[i] = begin;
	a->n[i] = end - begin;
}

/* Pixels beside the window, or beyond the `pixels` there are, count for nothing. */
static void axis_init(struct axis *a, double from, double length, size_t pixels, size_t count)
{
	const double scale = length / (double)count, support = fmax(scale, 1);
	const double low = floor(from);
	const double high = fmin(ceil(from + length), (double)pixels);

	a->most = (size_t)ceil(2 * support) + 2;
	a->first = gf_xcalloc(count, sizeof(*a->first));
	a->n = gf_xcalloc(count, sizeof(*a->n));
	a->weights = gf_xcalloc(count * a->most, sizeof(*a->weights));
	for (size_t i = 0; i < count; i++) {
		double centre = from + ((double)i + .5) * scale;

		weigh(a, i, centre, support, (size_t)fmax(low, floor(centre - support + .5)),
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
static void mix_rows(const struct pixels *p, const struct axis *down, size_t y, float *row)
{
	const unsigned char *bytes = p->bytes + down->first[y] * p->stride;
	const float *weights = down->weights + y * down->most;

	for (size_t x = 0; x < p->stride; x += PIXELS_STEP) {
		float sum[PIXELS_STEP] = {0};

		for (size_t k = 0; k < down->n[y]; k++)
			for (size_t i = 0; i < PIXELS_STEP; i++)
				sum[i] += weights[k] * (float)bytes[k * p->stride + x + i];
		for (size_t i = 0; i < PIXELS_STEP; i++)
			row[x + i] = sum[i];
	}
}

static void mix_columns(const float *row, const struct axis *across,
			const struct gf_picture_want *want, float *values)
{
	const size_t plane = want->width * want->height;

	for (size_t x = 0; x < want->width; x++) {
		const float *at = row + 3 * across->first[x];
		const float *weights = across->weights + x * across->most;
		float sum[3] = {0};

		for (size_t k = 0; k < across->n[x]; k++, at += 3)
			for (size_t c = 0; c < 3; c++)
				sum[c] += weights[k] * at[c];
		for (size_t c = 0; c < 3; c++)
			values[c * plane + x] = want->gain[c] * sum[c] + want->offset[c];
	}
}

/* The window, whose pixels are all there, as {3, height, width} values. Each is a mean of pixels
 * weighted by a triangle, as wide as the window is shrunk (PIL's and torchvision's bilinear,
 * without their rounding to bytes). */
static void crop_values(const struct pixels *p, const struct gf_crop *w,
			const struct gf_picture_want *want, float *values)
{
	GF_FREED float *row = gf_xcalloc(p->stride, sizeof(*row));
	GF_RELEASED(axis_release) struct axis across = {0}, down = {0};

	axis_init(&across, w->left, w->width, p->width, want->width);
	axis_init(&down, w->top, w->height, p->height, want->height);
	for (size_t y = 0; y < want->height; y++) {
		mix_rows(p, &down, y, row);
		mix_columns(row, &across, want, values + y * want->width);
	}
}

/* --- its pixels ------------------------------------------------------------
 */

/* Of a picture in several scans, as progressive ones are, libjpeg holds the coefficients of all
 * pixels: 6 bytes each, 8 with inks. */
#define MOST_PIXELS         ((size_t)1 << 27)
#define MOST_PIXELS_OF_MANY ((size_t)1 << 25)
#define MOST_SCANS          100
#define REMEDY              "(mend or remove the file)"
/* Beside a window, since the colours of its edge come from pixels there, too.
 */
#define MARGIN 2

/* libjpeg leaves by a jump: what has to be released lies here. */
struct reader {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf failed;
	const char *path;
	const struct gf_draw *draw;
	const struct gf_picture_want *want;
	struct pixels pixels;
	struct gf_crop window; /* in these pixels */
	struct gf_error *err;
	int rc;
};

/* --- what goes wrong ------------------------------------------------------ */

static void fail(j_common_ptr jpeg)
{
	struct reader *r = jpeg->client_data;
	char text[JMSG_LENGTH_MAX];

	jpeg->err->format_message(jpeg, text);
	r->rc = gf_error_set(r->err, -EINVAL, "%s: libjpeg cannot read it: %s " REMEDY, r->path,
			     text);
	longjmp(r->failed, 1);
}

/* What libjpeg would guess is damage. Many a sound picture has bytes too many, or says odd things
 * of itself. */
static void warn(j_common_ptr jpeg, int level)
{
	const int code = jpeg->err->msg_code;

	if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM &&
	    code != JWRN_JFIF_MAJOR)
		fail(jpeg);
}

static void bound(struct reader *r, size_t got, size_t most, const char *of)
{
	if (got <= most)
		return;
	r->rc = gf_error_set(r->err, -EINVAL, "%s: want at most %zu %s, got %zu " REMEDY, r->path,
			     most, of, got);
	longjmp(r->failed, 1);
}

static void count_scans(j_common_ptr jpeg)
{
	struct reader *r = jpeg->client_data;

	bound(r, (size_t)r->jpeg.input_scan_number, MOST_SCANS, "scans");
}

/* --- reading -------------------------------------------------------------- */

static void check(struct reader *r)
{
	struct jpeg_decompress_struct *j = &r->jpeg;
	const size_t pixels = (size_t)j->image_width * j->image_height;

	/* never inside the data of a scan, where 0xff is followed by 0 */
	if (!memmem(j->src->next_input_byte, j->src->bytes_in_buffer, "\xff\xd9", 2)) {
		r->rc = gf_error_set(r->err, -EINVAL,
				     "%s: want a whole JPEG file, its end is missing " REMEDY,
				     r->path);
		longjmp(r->failed, 1);
	}
	bound(r, pixels, MOST_PIXELS, "pixels");
	if (jpeg_has_multiple_scans(j))
		bound(r, pixels, MOST_PIXELS_OF_MANY, "pixels in several scans");
}

/* As small as leaves the wanted pixels to the window. */
static unsigned choose_scale(const struct gf_crop *w, const struct gf_picture_want *want)
{
	unsigned s = 8;

	while (s > 1 &&
	       (w->width < (double)(s * want->width) || w->height < (double)(s * want->height)))
		s /= 2;
	return s;
}

static void start(struct reader *r)
{
	struct jpeg_decompress_struct *j = &r->jpeg;
	struct gf_crop *w = &r->window;

	*w = gf_crop_draw(r->draw, j->image_width, j->image_height, r->want->width,
			  r->want->height);
	j->scale_num = 1;
	j->scale_denom = choose_scale(w, r->want);
	j->out_color_space = j->num_components == 4 ? JCS_CMYK : JCS_RGB;
	w->left /= j->scale_denom;
	w->top /= j->scale_denom;
	w->width /= j->scale_denom;
	w->height /= j->scale_denom;
	jpeg_start_decompress(j);
}

/* Inks become light, in place. Adobe's programs write inks inverted, so that they are light
 * already. */
static void convert_inks(unsigned char *row, size_t width, bool inverted)
{
	const unsigned char *at = row;

	for (size_t x = 0; x < width; x++, at += 4)
		for (size_t c = 0; c < 3; c++) {
			unsigned ink = inverted ? at[c] : 255u - at[c];
			unsigned key = inverted ? at[3] : 255u - at[3];

			*row++ = (unsigned char)((ink * key + 127) / 255);
		}
}

/* The window's rows, of no more columns than its blocks have. */
static void read_window(struct reader *r)
{
	struct jpeg_decompress_struct *j = &r->jpeg;
	struct gf_crop *w = &r->window;
	struct pixels *p = &r->pixels;
	const double right = ceil(w->left + w->width) + MARGIN;
	const double bottom = ceil(w->top + w->height);
	JDIMENSION left = (JDIMENSION)fmax(floor(w->left) - MARGIN, 0);
	JDIMENSION width = (JDIMENSION)fmin(right, (double)j->output_width) - left;
	const JDIMENSION top = (JDIMENSION)w->top;
	unsigned char *row;
	size_t bytes;

	jpeg_crop_scanline(j, &left, &width);
	p->width = width;
	p->height = (size_t)fmin(bottom, (double)j->output_height) - top;
	bytes = p->width * (size_t)j->output_components;
	p->stride = (bytes + PIXELS_STEP - 1) / PIXELS_STEP * PIXELS_STEP;
	p->bytes = calloc(p->height, p->stride);
	if (!p->bytes) {
		r->rc = gf_error_errno(r->err, -ENOMEM, "%s", r->path);
		longjmp(r->failed, 1);
	}
	w->left -= left;
	w->top -= top;
	if (top)
		jpeg_skip_scanlines(j, top);
	for (row = p->bytes; row < p->bytes + p->height * p->stride; row += p->stride) {
		jpeg_read_scanlines(j, &row, 1);
		if (j->out_color_space == JCS_CMYK)
			convert_inks(row, p->width, j->saw_Adobe_marker);
	}
}

static int decode(struct reader *r, const char *data, size_t size)
{
	struct jpeg_decompress_struct *j = &r->jpeg;

	j->err = jpeg_std_error(&r->errors);
	j->client_data = r;
	r->errors.error_exit = fail;
	r->errors.emit_message = warn;
	r->progress.progress_monitor = count_scans;
	if (setjmp(r->failed) == 0) {
		jpeg_create_decompress(j);
		j->progress = &r->progress;
		jpeg_mem_src(j, (const unsigned char *)data, size);
		jpeg_read_header(j, TRUE);
		check(r);
		start(r);
		read_window(r);
	}
	jpeg_destroy_decompress(j);
	return r->rc;
}

int gf_jpeg_read(const char *path, const struct gf_draw *draw, const struct gf_picture_want *want,
		 float *values, struct gf_error *err)
{
	struct reader r = {.path = path, .draw = draw, .want = want, .err = err};
	GF_FREED char *data = NULL;
	size_t size;
	int rc = gf_file_read_regular(path, &data, &size, err);

	rc = rc ?: decode(&r, data, size);
	if (!rc)
		crop_values(&r.pixels, &r.window, want, values);
	free(r.pixels.bytes);
	return rc;
}
