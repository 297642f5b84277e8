/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/jpeg.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/file.h"

/* Of a picture in several scans, as progressive ones are, libjpeg holds the
 * coefficients of all pixels: 6 bytes each, 8 with inks. */
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
	struct gf_pixels pixels;
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
	r->rc = gf_error_set(r->err, -EINVAL,
			     "%s: libjpeg cannot read it: %s " REMEDY, r->path,
			     text);
	longjmp(r->failed, 1);
}

/* What libjpeg would guess is damage. Many a sound picture has bytes too many,
 * or says odd things of itself. */
static void warn(j_common_ptr jpeg, int level)
{
	const int code = jpeg->err->msg_code;

	if (level < 0 && code != JWRN_EXTRANEOUS_DATA &&
	    code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR)
		fail(jpeg);
}

static void bound(struct reader *r, size_t got, size_t most, const char *of)
{
	if (got <= most)
		return;
	r->rc = gf_error_set(r->err, -EINVAL,
			     "%s: want at most %zu %s, got %zu " REMEDY,
			     r->path, most, of, got);
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
	if (!memmem(j->src->next_input_byte, j->src->bytes_in_buffer,
		    "\xff\xd9", 2)) {
		r->rc = gf_error_set(r->err, -EINVAL,
				     "%s: want a whole JPEG file, its end is "
				     "missing " REMEDY,
				     r->path);
		longjmp(r->failed, 1);
	}
	bound(r, pixels, MOST_PIXELS, "pixels");
	if (jpeg_has_multiple_scans(j))
		bound(r, pixels, MOST_PIXELS_OF_MANY,
		      "pixels in several scans");
}

/* As small as leaves the wanted pixels to the window. */
static unsigned choose_scale(const struct gf_crop *w,
			     const struct gf_picture_want *want)
{
	unsigned s = 8;

	while (s > 1 && (w->width < (double)(s * want->width) ||
			 w->height < (double)(s * want->height)))
		s /= 2;
	return s;
}

static void start(struct reader *r)
{
	struct jpeg_decompress_struct *j = &r->jpeg;
	struct gf_crop *w = &r->window;

	*w = gf_crop_draw(r->draw, j->image_width, j->image_height,
			  r->want->width, r->want->height);
	j->scale_num = 1;
	j->scale_denom = choose_scale(w, r->want);
	j->out_color_space = j->num_components == 4 ? JCS_CMYK : JCS_RGB;
	w->left /= j->scale_denom;
	w->top /= j->scale_denom;
	w->width /= j->scale_denom;
	w->height /= j->scale_denom;
	jpeg_start_decompress(j);
}

/* Inks become light, in place. Adobe's programs write inks inverted, so that
 * they are light already. */
static void convert_inks(unsigned char *row, size_t width, bool inverted)
{
	const unsigned char *at = row;
	size_t x, c;

	for (x = 0; x < width; x++, at += 4)
		for (c = 0; c < 3; c++) {
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
	struct gf_pixels *p = &r->pixels;
	const double right = ceil(w->left + w->width) + MARGIN;
	const double bottom = ceil(w->top + w->height);
	JDIMENSION left = (JDIMENSION)fmax(floor(w->left) - MARGIN, 0);
	JDIMENSION width =
		(JDIMENSION)fmin(right, (double)j->output_width) - left;
	const JDIMENSION top = (JDIMENSION)w->top;
	unsigned char *row;
	size_t bytes;

	jpeg_crop_scanline(j, &left, &width);
	p->width = width;
	p->height = (size_t)fmin(bottom, (double)j->output_height) - top;
	bytes = p->width * (size_t)j->output_components;
	p->stride =
		(bytes + GF_PIXELS_STEP - 1) / GF_PIXELS_STEP * GF_PIXELS_STEP;
	p->bytes = calloc(p->height, p->stride);
	if (!p->bytes) {
		r->rc = gf_error_errno(r->err, -ENOMEM, "%s", r->path);
		longjmp(r->failed, 1);
	}
	w->left -= left;
	w->top -= top;
	if (top)
		jpeg_skip_scanlines(j, top);
	for (row = p->bytes; row < p->bytes + p->height * p->stride;
	     row += p->stride) {
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

int gf_jpeg_read(const char *path, const struct gf_draw *draw,
		 const struct gf_picture_want *want, float *values,
		 struct gf_error *err)
{
	struct reader r = {
		.path = path, .draw = draw, .want = want, .err = err};
	char *data = NULL;
	size_t size;
	int rc = gf_file_read_regular(path, &data, &size, err);

	rc = rc ? rc : decode(&r, data, size);
	if (!rc)
		gf_crop_values(&r.pixels, &r.window, want, values);
	free(r.pixels.bytes);
	free(data);
	return rc;
}
