/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLOT_SVG_H
#define GF_PLOT_SVG_H

#include <stddef.h>

#include "base/text.h"

/*
 * The few SVG elements the pictures are made of. Coordinates are in pixels of
 * the view box, y downwards, written with at most two decimals. Presentation
 * attributes instead of a style sheet: office programs read those best.
 */
struct gf_svg {
	struct gf_text text;
};

struct gf_box {
	double x, y, width, height;
};

enum gf_anchor { GF_ANCHOR_START, GF_ANCHOR_MIDDLE, GF_ANCHOR_END };

struct gf_font {
	double size;
	enum gf_anchor anchor;
	const char *fill; /* NULL: GF_INK */
	int bold;
	double rotate; /* degrees, clockwise about (x, y) */
};

struct gf_stroke {
	const char *colour;
	double width;
	const char *dash; /* NULL: solid */
};

#define GF_INK   "#1a1a1a" /* texts and axes */
#define GF_FAINT "#5c5c5c" /* secondary texts */
#define GF_GRID  "#e0e0e0"

/* Okabe and Ito (2008) without black and yellow, which ink and white claim. */
extern const char *const gf_palette[];
size_t gf_palette_count(void);

void gf_svg_open(struct gf_svg *s, double width, double height,
		 const char *title);
char *gf_svg_close(struct gf_svg *s);
/* fill NULL: none; tooltip NULL: none. */
void gf_svg_rect(struct gf_svg *s, const struct gf_box *box, const char *fill,
		 const char *outline, const char *tooltip);
void gf_svg_line(struct gf_svg *s, double x1, double y1, double x2, double y2,
		 const struct gf_stroke *stroke);
/* count pairs x, y. */
void gf_svg_polyline(struct gf_svg *s, const double *points, size_t count,
		     const struct gf_stroke *stroke);
/* A closed, filled polygon with a thin white edge. */
void gf_svg_polygon(struct gf_svg *s, const double *points, size_t count,
		    const char *fill);
void gf_svg_circle(struct gf_svg *s, double x, double y, double radius,
		   const char *fill);
/* y is the base line. */
void gf_svg_write(struct gf_svg *s, double x, double y,
		  const struct gf_font *font, const char *text);

/* Estimated width in pixels, from Helvetica's metrics with a margin for wider
 * fonts: whoever asks wants to know whether a text fits. */
double gf_svg_text_width(const char *text, const struct gf_font *font);
/* The colour half way to white, into out. */
void gf_svg_pale(const char *fill, char out[8]);
/* Black or white, whichever is read better on a #rrggbb fill. */
const char *gf_svg_ink_on(const char *fill);

#endif
