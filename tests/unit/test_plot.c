/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "plot/plot.h"
#include "plot/svg.h"
#include "plot/ticks.h"
#include "test.h"

/* --- a small XML reader: is it well-formed? --------------------------------
 */

#define DEPTH 16

static const char *skip_entity(const char *p)
{
	static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(known); i++)
		if (!strncmp(p, known[i], strlen(known[i])))
			return p + strlen(known[i]);
	return NULL;
}

/* Past the tag at p, pushing or popping its name; NULL: malformed. */
static const char *skip_tag(const char *p, char stack[DEPTH][16], int *depth)
{
	const bool closing = p[1] == '/';
	size_t n;

	p += closing ? 2 : 1;
	n = strcspn(p, " />");
	if (n == 0 || n > 15)
		return NULL;
	if (closing) {
		if (!*depth || strncmp(stack[*depth - 1], p, n) ||
		    stack[*depth - 1][n] || p[n] != '>')
			return NULL;
		--*depth;
		return p + n + 1;
	}
	if (*depth == DEPTH)
		return NULL;
	memcpy(stack[*depth], p, n);
	stack[(*depth)++][n] = '\0';
	for (p += n; *p == ' ';) {
		p += 1 + strcspn(p + 1, "=<>\"");
		if (p[0] != '=' || p[1] != '"')
			return NULL;
		for (p += 2; *p && *p != '"';) {
			if (*p == '<')
				return NULL;
			p = *p == '&' ? skip_entity(p) : p + 1;
			if (!p)
				return NULL;
		}
		p++;
	}
	if (*p == '/') {
		p++;
		--*depth;
	}
	return *p == '>' ? p + 1 : NULL;
}

static bool well_formed(const char *xml)
{
	const char *p = strstr(xml, "?>\n");
	char stack[DEPTH][16];
	int depth = 0;

	if (strncmp(xml, "<?xml ", 6) || !p)
		return false;
	for (p += 3; p && *p;) {
		if (*p == '<')
			p = skip_tag(p, stack, &depth);
		else if (*p == '&')
			p = skip_entity(p);
		else if ((unsigned char)*p < ' ' && *p != '\n')
			p = NULL;
		else
			p++;
	}
	return p && !depth;
}

static size_t occurrences(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part)) != NULL) {
		text += strlen(part);
		n++;
	}
	return n;
}

/* The number after `name="` behind the first occurrence of `after` ... */
static double attribute_before(const char *svg, const char *tooltip,
			       const char *name)
{
	char key[32];
	const char *tip = strstr(svg, tooltip), *at, *found = NULL;

	snprintf(key, sizeof(key), " %s=\"", name);
	for (at = svg; tip && (at = strstr(at, key)) && at < tip; at++)
		found = at;
	return found ? strtod(found + strlen(key), NULL) : NAN;
}

/* --- Gantt -----------------------------------------------------------------
 */

static void bar(struct gf_gantt *g, double start, double end, const char *label)
{
	gf_gantt_bar(g, &(struct gf_gantt_bar){start, end, GF_BAR_NORMAL, label,
					       NULL});
}

static void test_gantt_coordinates(void)
{
	struct gf_gantt g = {0};
	struct gf_error err;
	char *svg = NULL, *again = NULL;
	double a_x, a_w, b_x, b_w;

	gf_gantt_title(&g, "one", NULL);
	gf_gantt_panel(&g, "predicted");
	gf_gantt_row(&g, "compute");
	bar(&g, 0, 0.010, "whole");
	gf_gantt_row(&g, "network");
	bar(&g, 0.0025, 0.0050, "second quarter");
	gf_gantt_mark(&g, 0.010, "iteration");
	EXPECT(gf_gantt_svg(&g, &svg, &err) == 0, "%s", err.text);
	EXPECT(well_formed(svg), "%s", svg);
	/* The first bar spans the axis; the second its second quarter. */
	a_x = attribute_before(svg, "whole: 0 s to 10 ms", "x");
	a_w = attribute_before(svg, "whole: 0 s to 10 ms", "width");
	b_x = attribute_before(svg, "second quarter: 2.5 ms", "x");
	b_w = attribute_before(svg, "second quarter: 2.5 ms", "width");
	EXPECT(a_w > 500, "%g", a_w);
	EXPECT_NEAR(b_x, a_x + a_w / 4, 1e-4, "start of the second bar");
	EXPECT_NEAR(b_w, a_w / 4, 1e-4, "width of the second bar");
	EXPECT(attribute_before(svg, "second quarter: 2.5", "y") >
		       attribute_before(svg, "whole: 0 s", "y") + 20,
	       "rows lie below each other");
	EXPECT(strstr(svg, ">time (ms)</text>"), "axis unit: %s", svg);
	EXPECT(gf_gantt_svg(&g, &again, &err) == 0, "%s", err.text);
	EXPECT_TEXT(again, svg);
	free(svg);
	free(again);
	gf_gantt_release(&g);
}

static void test_gantt_refuses(void)
{
	static const struct {
		double start, end, mark;
		const char *want;
	} cases[] = {
		{NAN, 1, 0,
		 "panel 0, row 0: bar 0: want 0 <= start <= end, got nan, 1"},
		{0, INFINITY, 0,
		 "panel 0, row 0: bar 0: want 0 <= start <= end, got 0, inf"},
		{2, 1, 0,
		 "panel 0, row 0: bar 0: want 0 <= start <= end, got 2, 1"},
		{-1, 1, 0,
		 "panel 0, row 0: bar 0: want 0 <= start <= end, got -1, 1"},
		{0, 1, -1, "panel 0, mark 0: want a time >= 0, got -1"},
	};
	struct gf_gantt g = {0};
	struct gf_error err;
	char *svg = NULL;
	size_t i;

	EXPECT(gf_gantt_svg(&g, &svg, &err) == -EINVAL, "empty chart");
	EXPECT_TEXT(err.text, "want at least one bar, got none");
	gf_gantt_row(&g, "a row without bars");
	EXPECT(gf_gantt_svg(&g, &svg, NULL) == -EINVAL, "empty row");
	gf_gantt_release(&g);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		bar(&g, cases[i].start, cases[i].end, "x");
		gf_gantt_mark(&g, cases[i].mark, "m");
		EXPECT(gf_gantt_svg(&g, &svg, &err) == -EINVAL, "case %zu", i);
		EXPECT_TEXT(err.text, cases[i].want);
		gf_gantt_release(&g);
	}
	EXPECT(!svg, "no output on failure");
}

/* A thousand bars: all there, labels only where they fit. */
static void test_gantt_many(void)
{
	struct gf_gantt g = {0};
	struct gf_error err;
	char *svg = NULL, name[32];
	int i;

	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "tensor%04d", i);
		bar(&g, i * 1e-3, (i + 1) * 1e-3, name);
	}
	bar(&g, 1, 2, "wide");
	EXPECT(gf_gantt_svg(&g, &svg, &err) == 0, "%s", err.text);
	EXPECT(well_formed(svg), "thousand bars");
	EXPECT(occurrences(svg, "<title>tensor") == 1000, "tooltips");
	EXPECT(occurrences(svg, ">tensor") == 1000, "no label fits");
	EXPECT(occurrences(svg, ">wide</text>") == 1, "this one fits");
	free(svg);
	gf_gantt_release(&g);
}

/* The y of the text element that holds `text`. */
static double text_y(const char *svg, const char *text)
{
	const char *p = strstr(svg, text);

	while (p && p > svg && strncmp(p, "<text", 5))
		p--;
	p = p ? strstr(p, " y=\"") : NULL;
	return p ? strtod(p + 4, NULL) : NAN;
}

/* Labels of marks share a line only when neither runs into the other. */
static void test_gantt_marks(void)
{
	static const struct {
		double first, second;
		int same_line;
	} cases[] = {
		{0.1, 0.8, 1},
		{0.1, 0.11, 0},
		{0.98, 1.0, 0}, /* both stand left of their lines */
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_gantt g = {0};
		struct gf_error err;
		char *svg = NULL;

		bar(&g, 0, 1, "all");
		gf_gantt_mark(&g, cases[i].second, "second mark");
		gf_gantt_mark(&g, cases[i].first, "first mark");
		EXPECT(gf_gantt_svg(&g, &svg, &err) == 0, "%s", err.text);
		EXPECT((text_y(svg, ">first mark") ==
			text_y(svg, ">second mark")) == cases[i].same_line,
		       "case %zu: y %g and %g", i, text_y(svg, ">first mark"),
		       text_y(svg, ">second mark"));
		free(svg);
		gf_gantt_release(&g);
	}
}

static void test_gantt_no_time(void)
{
	struct gf_gantt g = {0};
	struct gf_error err;
	char *svg = NULL;

	bar(&g, 0, 0, "nothing");
	EXPECT(gf_gantt_svg(&g, &svg, &err) == 0, "%s", err.text);
	EXPECT(well_formed(svg) && !strstr(svg, "nan"), "%s", svg);
	free(svg);
	gf_gantt_release(&g);
}

/* tests/data/vectors.md, six on two lanes: 43 units of time. */
static void test_iteration(void)
{
	static const double ready[] = {1, 4, 6, 9, 12, 17};
	static const struct {
		size_t first, last;
		struct gf_predicted_message t;
	} want[] = {{0, 0, {4, 4, 14.5}},
		    {1, 1, {7, 7, 26.5}},
		    {2, 3, {12, 14.5, 43}},
		    {4, 5, {20, 26.5, 43}}};
	static const size_t sizes[] = {6, 12, 8, 10, 6, 3};
	struct gf_tensor tensors[6] = {0};
	struct gf_model_profile model = {.forward_s = 3,
					 .backward_s = 17,
					 .tensors = tensors,
					 .ntensors = 6};
	struct gf_message messages[4] = {0};
	struct gf_predicted_message times[4];
	struct gf_plan plan = {.model = &model,
			       .messages = messages,
			       .nmessages = 4,
			       .lanes = 2};
	struct gf_plot_times t = {0, 20, 43, times};
	struct gf_gantt g = {0};
	struct gf_error err;
	char *svg = NULL, names[6][4];
	size_t i;

	for (i = 0; i < 6; i++) {
		snprintf(names[i], sizeof(names[i]), "l%zu", 6 - i);
		tensors[i].name = names[i];
		tensors[i].count_elems = sizes[i];
		tensors[i].ready_s = ready[i];
	}
	for (i = 0; i < 4; i++) {
		messages[i].first = want[i].first;
		messages[i].last = want[i].last;
		messages[i].mode = i ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
		times[i] = want[i].t;
	}
	gf_gantt_title(&g, "six tensors on 4 ranks: 43 s per iteration",
		       "optimal, two lanes");
	gf_gantt_iteration(&g, "predicted", &plan, &t);
	EXPECT(gf_gantt_svg(&g, &svg, &err) == 0, "%s", err.text);
	EXPECT(well_formed(svg), "%s", svg);
	EXPECT(strstr(svg, ">lane 2</text>"), "two lanes are used");
	EXPECT(!strstr(svg, ">lane 3</text>"), "not three");
	EXPECT(strstr(svg, ">l2 to l1 ("), "fused tensors are named");
	EXPECT(strstr(svg, ">iteration 43 s</text>"), "the end is marked");
	EXPECT_NEAR(attribute_before(svg, "<title>l4 to l3", "y"),
		    attribute_before(svg, "<title>l6", "y"), 1e-9,
		    "message 2 follows message 0 on lane 1");
	free(svg);
	gf_gantt_release(&g);
}

/* --- line chart ------------------------------------------------------------
 */

static void test_chart(void)
{
	static const double x[] = {4, 16, 64, 256}, y[] = {1, 10, 100, 1000};
	static const double low[] = {0.9, 9, 90, 900};
	static const double high[] = {1.1, 11, 110, 1000};
	const struct gf_series series[] = {
		{"measured", GF_SERIES_LINE_MARKERS, x, y, low, high, 4, false},
		{"ideal", GF_SERIES_IDEAL, x, x, NULL, NULL, 4, false}};
	struct gf_chart c = {
		.title = "scaling",
		.x = {"ranks", GF_QUANTITY_NUMBER, GF_SCALE_LOG2, false},
		.y = {"time", GF_QUANTITY_SECONDS, GF_SCALE_LOG10, false},
		.series = series,
		.nseries = 2};
	struct gf_error err;
	double points[8];
	char *svg = NULL;
	const char *p;
	int i, used, n = 0;

	EXPECT(gf_chart_svg(&c, &svg, &err) == 0, "%s", err.text);
	EXPECT(well_formed(svg), "%s", svg);
	/* Equal ratios on logarithmic axes: equal steps. */
	p = strstr(svg, "<polyline points=\"");
	for (p += strlen("<polyline points=\""), i = 0; i < 4; i++, p += n)
		used = sscanf(p, " %lf,%lf%n", &points[2 * i],
			      &points[2 * i + 1], &n) == 2;
	EXPECT(used, "four points in %s", svg);
	for (i = 1; i < 3; i++) {
		EXPECT_NEAR(points[2 * i + 2] - points[2 * i],
			    points[2] - points[0], 2e-4, "x step %d", i);
		EXPECT_NEAR(points[2 * i + 3] - points[2 * i + 1],
			    points[3] - points[1], 2e-4, "y step %d", i);
	}
	EXPECT(points[7] < points[1], "larger is higher");
	EXPECT(occurrences(svg, "stroke-dasharray") == 2,
	       "ideal is dashed, in plot and legend");
	EXPECT(occurrences(svg, "<circle") == 5, "four markers and the key");
	free(svg);
}

static void test_chart_refuses(void)
{
	static const double x[] = {1, 2};
	static const struct {
		double y[2];
		size_t count;
		enum gf_scale scale;
		const char *want;
	} cases[] = {
		{{1, 1},
		 0,
		 GF_SCALE_LINEAR,
		 "want at least one point, got none"},
		{{1, NAN},
		 2,
		 GF_SCALE_LINEAR,
		 "series 0, point 1: want a finite time, got nan"},
		{{INFINITY, 1},
		 2,
		 GF_SCALE_LINEAR,
		 "series 0, point 0: want a finite time, got inf"},
		{{1, 0},
		 2,
		 GF_SCALE_LOG10,
		 "series 0, point 1: want a time > 0 for a logarithmic axis, "
		 "got 0"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_series s = {.name = "s",
				      .x = x,
				      .y = cases[i].y,
				      .count = cases[i].count};
		struct gf_chart c = {.title = "t", .series = &s, .nseries = 1};
		struct gf_error err;
		char *svg = NULL;

		c.y.label = "time";
		c.y.scale = cases[i].scale;
		EXPECT(gf_chart_svg(&c, &svg, &err) == -EINVAL, "case %zu", i);
		EXPECT(!svg, "case %zu: output on failure", i);
		EXPECT_TEXT(err.text, cases[i].want);
	}
}

/* --- bars ------------------------------------------------------------------
 */

static void test_bars(void)
{
	static const char *const groups[] = {"a & b", "c"};
	static const double paper[] = {2, 4}, ours[] = {1, NAN};
	const struct gf_bar_series series[] = {
		{"paper", paper, NULL, NULL, false},
		{"model", ours, NULL, NULL, false}};
	struct gf_bars b = {
		.title = "bars",
		.y = {"time", GF_QUANTITY_SECONDS, GF_SCALE_LINEAR, false},
		.groups = groups,
		.ngroups = 2,
		.series = series,
		.nseries = 2};
	static const double bad[] = {1, -1};
	const struct gf_bar_series pair[] = {
		{"paper", paper, NULL, NULL, false},
		{"model", paper, NULL, NULL, true},
		{"other", paper, NULL, NULL, false}};
	struct gf_error err;
	char *svg = NULL;

	EXPECT(gf_bars_svg(&b, &svg, &err) == 0, "%s", err.text);
	EXPECT(well_formed(svg), "%s", svg);
	EXPECT_NEAR(
		attribute_before(svg, "c, paper: 4 s", "height"),
		2 * attribute_before(svg, "a &amp; b, paper: 2 s", "height"),
		1e-3, "heights are in proportion");
	EXPECT(!strstr(svg, "c, model"), "NAN leaves a bar out");
	free(svg);
	b.series = pair;
	b.nseries = 3;
	EXPECT(gf_bars_svg(&b, &svg, &err) == 0, "%s", err.text);
	EXPECT(occurrences(svg, "\"#0072b2\"") == 3 &&
		       occurrences(svg, "\"#80b9d9\"") == 3 &&
		       occurrences(svg, "\"#d55e00\"") == 3,
	       "a pair shares its colour: %s", svg);
	free(svg);
	b.series = &(struct gf_bar_series){"x", bad, NULL, NULL, false};
	b.nseries = 1;
	EXPECT(gf_bars_svg(&b, &svg, &err) == -EINVAL, "negative bar");
	EXPECT_TEXT(err.text, "series 0, group 1: want a bar >= 0, got -1");
	b.nseries = 0;
	EXPECT(gf_bars_svg(&b, &svg, &err) == -EINVAL, "no series");
}

/* --- parts -----------------------------------------------------------------
 */

static void test_escaping(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"<script>alert(\"1\")</script>",
		 ">&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;</text>"},
		{"a & b", ">a &amp; b</text>"},
		{"\xc2\xb5s \xe2\x86\x92", ">\xc2\xb5s \xe2\x86\x92</text>"},
		{"bell\a", ">bell?</text>"},
		{"lone \xff byte", ">lone ? byte</text>"},
		{"cut \xe2\x86", ">cut ?"
				 "?</text>"},
		{"long \xc0\x80 zero", ">long ?? zero</text>"},
		{"\xed\xa0\x80", ">?"
				 "?"
				 "?</text>"}, /* a surrogate */
		{"tab\tnew\nline", ">tab new?line</text>"},
	};
	const struct gf_font font = {12, GF_ANCHOR_START, NULL, 0, 0};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_svg s = {{0}};
		char *svg;

		gf_svg_open(&s, 10, 10, cases[i].text);
		gf_svg_write(&s, 1, 2, &font, cases[i].text);
		svg = gf_svg_close(&s);
		EXPECT(well_formed(svg), "%s", svg);
		EXPECT(strstr(svg, cases[i].want), "want %s in %s",
		       cases[i].want, svg);
		free(svg);
	}
}

static void test_ticks(void)
{
	static const struct {
		struct gf_plot_axis axis;
		double low, high;
		const char *want; /* labels, then the unit */
	} cases[] = {
		{{"", GF_QUANTITY_SECONDS, GF_SCALE_LINEAR, false},
		 0,
		 0.0431,
		 "0 5 10 15 20 25 30 35 40 45 |ms"},
		{{"", GF_QUANTITY_NUMBER, GF_SCALE_LINEAR, false},
		 3,
		 0.9 + 3,
		 "0.0 0.5 1.0 1.5 2.0 2.5 3.0 3.5 4.0 |"},
		{{"", GF_QUANTITY_NUMBER, GF_SCALE_LINEAR, true},
		 3,
		 3.9,
		 "3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 |"},
		{{"", GF_QUANTITY_PERCENT, GF_SCALE_LINEAR, false},
		 0.2,
		 1,
		 "0 10 20 30 40 50 60 70 80 90 100 |%"},
		{{"", GF_QUANTITY_NUMBER, GF_SCALE_LOG2, false},
		 4,
		 192,
		 "4 8 16 32 64 128 256 |"},
		{{"", GF_QUANTITY_BYTES, GF_SCALE_LOG2, false},
		 4,
		 1 << 30,
		 "4 B 32 B 256 B 2 KiB 16 KiB 128 KiB 1 MiB 8 MiB 64 MiB "
		 "512 MiB |"},
		{{"", GF_QUANTITY_SECONDS, GF_SCALE_LOG10, false},
		 2e-5,
		 3,
		 "10 us 100 us 1 ms 10 ms 100 ms 1 s 10 s |"},
		{{"", GF_QUANTITY_SECONDS, GF_SCALE_LOG10, false},
		 0.012,
		 0.15,
		 "10 ms 20 ms 50 ms 100 ms 200 ms |"},
		{{"", GF_QUANTITY_NUMBER, GF_SCALE_LOG10, false},
		 22300,
		 1514300,
		 "100k 1M |"},
		{{"", GF_QUANTITY_NUMBER, GF_SCALE_LOG2, false},
		 1024,
		 32768,
		 "1024 2048 4096 8192 16.4k 32.8k |"},
		{{"", GF_QUANTITY_RATE, GF_SCALE_LINEAR, false},
		 0,
		 1.25e9,
		 "0.0 0.2 0.4 0.6 0.8 1.0 1.2 1.4 |GB/s"},
		{{"", GF_QUANTITY_NUMBER, GF_SCALE_LINEAR, false},
		 0,
		 0,
		 "0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 |"},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_text text = {0};
		struct gf_ticks t;

		gf_ticks_make(&cases[i].axis, cases[i].low, cases[i].high, 10,
			      1, &t);
		for (k = 0; k < t.count; k++)
			gf_text_addf(&text, "%s ", t.label[k]);
		gf_text_addf(&text, "|%s", t.unit);
		EXPECT_TEXT(text.data, cases[i].want);
		EXPECT(t.low <= cases[i].low && t.high >= cases[i].high,
		       "case %zu: %g to %g", i, t.low, t.high);
		gf_text_release(&text);
	}
}

int main(void)
{
	test_gantt_coordinates();
	test_gantt_refuses();
	test_gantt_many();
	test_gantt_marks();
	test_gantt_no_time();
	test_iteration();
	test_chart();
	test_chart_refuses();
	test_bars();
	test_escaping();
	test_ticks();
	return TEST_END();
}
