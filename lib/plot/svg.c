/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const char *const gf_palette[] = {
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
};

size_t gf_palette_count(void)
{
	return GF_ARRAY_LENGTH(gf_palette);
}

/* Length of the UTF-8 sequence at p that XML 1.0 allows, or 0. */
static size_t sequence(const unsigned char *p)
{
	unsigned long code;
	size_t n, i;

	if (p[0] < 0x80)
		return p[0] >= 0x20 || p[0] == '\t' ? 1 : 0;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2, code = p[0] & 0x1f;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3, code = p[0] & 0x0f;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4, code = p[0] & 0x07;
	else
		return 0;
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && code < 0x800) || (n == 4 && code < 0x10000) ||
	    (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff ||
	    code == 0xfffe || code == 0xffff)
		return 0;
	return n;
}

/* Text content or attribute value. What XML forbids becomes a '?'. */
static void escape(struct gf_svg *s, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		size_t n = sequence(p);

		switch (*p) {
		case '&':
			gf_text_addf(&s->text, "&amp;");
			break;
		case '<':
			gf_text_addf(&s->text, "&lt;");
			break;
		case '>':
			gf_text_addf(&s->text, "&gt;");
			break;
		case '"':
			gf_text_addf(&s->text, "&quot;");
			break;
		case '\t':
			gf_text_addf(&s->text, " ");
			break;
		default:
			if (n)
				gf_text_add(&s->text, (const char *)p, n);
			else
				gf_text_addf(&s->text, "?");
		}
		p += n ? n : 1;
	}
}

/* At most two decimals, none that are zero, and no "-0". */
static void number(struct gf_svg *s, double value)
{
	char text[64];
	size_t n;

	snprintf(text, sizeof(text), "%.2f", value);
	for (n = strlen(text); text[n - 1] == '0'; n--)
		;
	if (text[n - 1] == '.')
		n--;
	text[n] = '\0';
	gf_text_addf(&s->text, "%s", strcmp(text, "-0") ? text : "0");
}

static void attribute(struct gf_svg *s, const char *name, double value)
{
	gf_text_addf(&s->text, " %s=\"", name);
	number(s, value);
	gf_text_addf(&s->text, "\"");
}

void gf_svg_open(struct gf_svg *s, double width, double height,
		 const char *title)
{
	struct gf_box page = {0, 0, width, height};

	gf_text_addf(&s->text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			       "<svg xmlns=\"http://www.w3.org/2000/svg\" "
			       "version=\"1.1\"");
	attribute(s, "width", width);
	attribute(s, "height", height);
	gf_text_addf(&s->text, " viewBox=\"0 0 ");
	number(s, width);
	gf_text_addf(&s->text, " ");
	number(s, height);
	gf_text_addf(&s->text, "\" font-family=\"Helvetica, Arial, "
			       "'Liberation Sans', 'DejaVu Sans', "
			       "sans-serif\">\n<title>");
	escape(s, title);
	gf_text_addf(&s->text, "</title>\n");
	gf_svg_rect(s, &page, "#ffffff", NULL, NULL);
}

char *gf_svg_close(struct gf_svg *s)
{
	gf_text_addf(&s->text, "</svg>\n");
	return gf_text_take(&s->text);
}

void gf_svg_rect(struct gf_svg *s, const struct gf_box *box, const char *fill,
		 const char *outline, const char *tooltip)
{
	gf_text_addf(&s->text, "<rect");
	attribute(s, "x", box->x);
	attribute(s, "y", box->y);
	attribute(s, "width", box->width);
	attribute(s, "height", box->height);
	gf_text_addf(&s->text, " fill=\"%s\"", fill ? fill : "none");
	if (outline)
		gf_text_addf(&s->text, " stroke=\"%s\"", outline);
	if (!tooltip) {
		gf_text_addf(&s->text, "/>\n");
		return;
	}
	gf_text_addf(&s->text, "><title>");
	escape(s, tooltip);
	gf_text_addf(&s->text, "</title></rect>\n");
}

static void stroke_attributes(struct gf_svg *s, const struct gf_stroke *stroke)
{
	gf_text_addf(&s->text, " stroke=\"%s\"", stroke->colour);
	attribute(s, "stroke-width", stroke->width);
	if (stroke->dash)
		gf_text_addf(&s->text, " stroke-dasharray=\"%s\"",
			     stroke->dash);
}

void gf_svg_line(struct gf_svg *s, double x1, double y1, double x2, double y2,
		 const struct gf_stroke *stroke)
{
	gf_text_addf(&s->text, "<line");
	attribute(s, "x1", x1);
	attribute(s, "y1", y1);
	attribute(s, "x2", x2);
	attribute(s, "y2", y2);
	stroke_attributes(s, stroke);
	gf_text_addf(&s->text, "/>\n");
}

static void points_attribute(struct gf_svg *s, const double *points,
			     size_t count)
{
	size_t i;

	gf_text_addf(&s->text, " points=\"");
	for (i = 0; i < count; i++) {
		gf_text_addf(&s->text, "%s", i ? " " : "");
		number(s, points[2 * i]);
		gf_text_addf(&s->text, ",");
		number(s, points[2 * i + 1]);
	}
	gf_text_addf(&s->text, "\"");
}

void gf_svg_polyline(struct gf_svg *s, const double *points, size_t count,
		     const struct gf_stroke *stroke)
{
	gf_text_addf(&s->text, "<polyline");
	points_attribute(s, points, count);
	gf_text_addf(&s->text, " fill=\"none\" stroke-linejoin=\"round\"");
	stroke_attributes(s, stroke);
	gf_text_addf(&s->text, "/>\n");
}

void gf_svg_polygon(struct gf_svg *s, const double *points, size_t count,
		    const char *fill)
{
	gf_text_addf(&s->text, "<polygon");
	points_attribute(s, points, count);
	gf_text_addf(&s->text, " fill=\"%s\" stroke=\"#ffffff\"/>\n", fill);
}

void gf_svg_circle(struct gf_svg *s, double x, double y, double radius,
		   const char *fill)
{
	gf_text_addf(&s->text, "<circle");
	attribute(s, "cx", x);
	attribute(s, "cy", y);
	attribute(s, "r", radius);
	gf_text_addf(&s->text, " fill=\"%s\" stroke=\"#ffffff\"/>\n", fill);
}

void gf_svg_write(struct gf_svg *s, double x, double y,
		  const struct gf_font *font, const char *text)
{
	static const char *const anchors[] = {"start", "middle", "end"};

	gf_text_addf(&s->text, "<text");
	attribute(s, "x", x);
	attribute(s, "y", y);
	attribute(s, "font-size", font->size);
	if (font->anchor != GF_ANCHOR_START)
		gf_text_addf(&s->text, " text-anchor=\"%s\"",
			     anchors[font->anchor]);
	if (font->bold)
		gf_text_addf(&s->text, " font-weight=\"bold\"");
	gf_text_addf(&s->text, " fill=\"%s\"",
		     font->fill ? font->fill : GF_INK);
	if (font->rotate != 0) {
		gf_text_addf(&s->text, " transform=\"rotate(");
		number(s, font->rotate);
		gf_text_addf(&s->text, " ");
		number(s, x);
		gf_text_addf(&s->text, " ");
		number(s, y);
		gf_text_addf(&s->text, ")\"");
	}
	gf_text_addf(&s->text, ">");
	escape(s, text);
	gf_text_addf(&s->text, "</text>\n");
}

double gf_svg_text_width(const char *text, const struct gf_font *font)
{
	/* Helvetica's advance widths of ' ' to '~', thousandths of an em. */
	static const unsigned short advance[] = {
		278, 278, 355, 556, 556, 889, 667, 191, 333,  333, 389, 584,
		278, 333, 278, 278, 556, 556, 556, 556, 556,  556, 556, 556,
		556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722,
		722, 667, 611, 778, 722, 278, 500, 667, 556,  833, 722, 778,
		667, 778, 722, 667, 611, 722, 667, 944, 667,  667, 611, 278,
		278, 278, 469, 556, 333, 556, 556, 500, 556,  556, 278, 556,
		556, 222, 222, 500, 222, 833, 556, 556, 556,  556, 333, 500,
		278, 556, 500, 722, 500, 500, 500, 334, 260,  334, 584,
	};
	const double margin = font->bold ? 1.16 : 1.08;
	const unsigned char *p = (const unsigned char *)text;
	double width = 0;

	while (*p) {
		size_t n = sequence(p);

		/* Outside ASCII: as wide as the widest script, to be safe. */
		width += *p >= ' ' && *p <= '~' ? advance[*p - ' '] : 1000;
		p += n ? n : 1;
	}
	return width / 1000 * font->size * margin;
}

void gf_svg_pale(const char *fill, char out[8])
{
	unsigned long rgb = strtoul(fill + 1, NULL, 16);

	snprintf(out, 8, "#%06lx", 0x808080UL + ((rgb >> 1) & 0x7f7f7fUL));
}

const char *gf_svg_ink_on(const char *fill)
{
	unsigned long rgb = strtoul(fill + 1, NULL, 16);
	double channel[3];
	int i;

	for (i = 0; i < 3; i++)
		channel[i] = pow((rgb >> (16 - 8 * i) & 255) / 255.0, 2.2);
	/* Relative luminance (ITU-R BT.709), split where contrasts meet. */
	return 0.2126 * channel[0] + 0.7152 * channel[1] + 0.0722 * channel[2] >
			       0.22
		       ? "#000000"
		       : "#ffffff";
}
