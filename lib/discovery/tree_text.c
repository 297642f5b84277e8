/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/discovery.h"

#include <ctype.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"

/* The lines of a tree: to a part with others after it, to the last one, and before the parts of
 * each. */
struct strokes {
	const char *branch, *last, *pass, *blank;
};
static const struct strokes unicode = {"├─ ", "└─ ", "│  ", "   "};
static const struct strokes ascii_strokes = {"|- ", "`- ", "|  ", "   "};

struct drawing {
	const struct gf_topology *t;
	const struct strokes *s;
	struct gf_text *out;
};

static const char *plural(long long n)
{
	return n == 1 ? "" : "s";
}

/* "8 ranks share 400 Gb/s", "8 NICs of 400 Gb/s"; `ranks` enter the level together. */
static void add_level_rate(const struct gf_level *l, size_t ranks, struct gf_text *out)
{
	const double each = l->bandwidth_bytes_per_s / (double)(l->nics ? l->nics : 1);

	if (l->nics)
		gf_text_addf(out, "%zu NIC%s of ", l->nics, plural((long long)l->nics));
	else if (ranks > 1)
		gf_text_addf(out, "%zu ranks share ", ranks);
	gf_text_addf(out, "%s (%s)",
		     (gf_level_is_within_host(l) ? gf_human_rate(each) : gf_human_link(each)).text,
		     gf_origin_names[l->bandwidth_origin]);
}

static void draw_levels(const struct drawing *d)
{
	const struct gf_topology *t = d->t;

	for (size_t i = t->nlevels; i-- > 0;) {
		const struct gf_level *l = &t->levels[i];

		for (size_t depth = t->nlevels - 1; depth > i; depth--)
			gf_text_addf(d->out, "%s", depth - 1 == i ? d->s->last : d->s->blank);
		gf_text_addf(d->out, "%s x%zu: %s, ", l->name, l->size, l->link);
		add_level_rate(l, (size_t)gf_levels_ranks(t->levels, i), d->out);
		gf_text_addf(d->out, ", %s (%s)\n", gf_human_time(l->latency_s).text,
			     gf_origin_names[l->latency_origin]);
	}
}

static void add_place(const char *pci, int numa, struct gf_text *out)
{
	if (pci)
		gf_text_addf(out, ", pci %s", pci);
	if (numa >= 0)
		gf_text_addf(out, ", numa %d", numa);
}

static void add_rate(double bytes_per_s, struct gf_human human, enum gf_origin origin,
		     struct gf_text *out)
{
	if (bytes_per_s > 0)
		gf_text_addf(out, ", %s (%s)\n", human.text, gf_origin_names[origin]);
	else
		gf_text_addf(out, ", rate unknown\n");
}

/* The NVLinks of a device, and the interface near it. */
static void add_near(const struct gf_host *h, const struct gf_device *d, struct gf_text *out)
{
	int peers[GF_PATH_NVSWITCH + 1] = {0};
	enum gf_path p;

	for (size_t i = 0; d->pci && i < h->nlinks; i++) {
		const struct gf_device_link *l = &h->links[i];

		if (l->path <= GF_PATH_NVSWITCH &&
		    (strcmp(l->from, d->pci) == 0 || strcmp(l->to, d->pci) == 0))
			peers[l->path]++;
	}
	for (p = GF_PATH_NVLINK; p <= GF_PATH_NVSWITCH; p++)
		if (peers[p])
			gf_text_addf(out, ", %s to %d", gf_path_names[p], peers[p]);
	if (d->nic)
		gf_text_addf(out, ", near %s (%s)", d->nic, gf_path_names[d->nic_path]);
}

static void add_facts(const struct gf_host *h, struct gf_text *out)
{
	const struct {
		int count;
		const char *what;
	} facts[] = {
		{h->ranks, "rank"}, {h->sockets, "socket"}, {h->numa_nodes, "NUMA node"},
		{h->cores, "core"}, {h->threads, "thread"},
	};
	int said = 0;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(facts); i++)
		if (facts[i].count > 0)
			gf_text_addf(out, "%s%d %s%s", said++ ? ", " : "", facts[i].count,
				     facts[i].what, plural(facts[i].count));
	if (h->memory_bytes > 0)
		gf_text_addf(out, "%s%s", said++ ? ", " : "",
			     gf_human_size((double)h->memory_bytes).text);
}

static void add_parts(const struct gf_host *h, const struct strokes *s, const char *lead,
		      struct gf_text *out)
{
	size_t i, left = h->ndevices + h->nnics;

	for (i = 0; i < h->ndevices; i++) {
		const struct gf_device *d = &h->devices[i];

		gf_text_addf(out, "%s%s%s %s", lead, --left ? s->branch : s->last, d->type,
			     d->name);
		add_place(d->pci, d->numa, out);
		if (d->memory_bytes > 0)
			gf_text_addf(out, ", %s", gf_human_size((double)d->memory_bytes).text);
		add_near(h, d, out);
		add_rate(d->bandwidth_bytes_per_s, gf_human_rate(d->bandwidth_bytes_per_s),
			 d->bandwidth_origin, out);
	}
	for (i = 0; i < h->nnics; i++) {
		const struct gf_nic *n = &h->nics[i];

		gf_text_addf(out, "%s%s%s: %s, %s", lead, --left ? s->branch : s->last, n->name,
			     n->link, n->state);
		add_place(n->pci, n->numa, out);
		add_rate(n->bandwidth_bytes_per_s, gf_human_link(n->bandwidth_bytes_per_s),
			 n->bandwidth_origin, out);
	}
}

/* Whether two hosts differ in nothing but their names. */
static bool alike(const struct gf_host *a, const struct gf_host *b)
{
	struct gf_text drawn[2] = {{0}, {0}};
	bool same;

	add_facts(a, &drawn[0]);
	add_parts(a, &unicode, "", &drawn[0]);
	add_facts(b, &drawn[1]);
	add_parts(b, &unicode, "", &drawn[1]);
	same = drawn[0].length == drawn[1].length &&
	       (!drawn[0].length || !strcmp(drawn[0].data, drawn[1].data));
	gf_text_release(&drawn[0]);
	gf_text_release(&drawn[1]);
	return same;
}

/* How many hosts from `first` on, and below `end`, are alike. */
static size_t run_at(const struct gf_topology *t, size_t first, size_t end)
{
	size_t n = 1;

	while (first + n < end && alike(&t->hosts[first], &t->hosts[first + n]))
		n++;
	return n;
}

/* So many digits are enough for any counter. */
enum { DIGITS_MAX = 18 };

/* The number at the end of a name, and the characters before it. */
struct numbered {
	size_t prefix, digits; /* no digits: no number */
	unsigned long long number;
};

static struct numbered number_of(const char *name)
{
	size_t length = strlen(name), digits = 0;

	while (digits < length && digits < DIGITS_MAX &&
	       isdigit((unsigned char)name[length - digits - 1]))
		digits++;
	return (struct numbered){
		.prefix = length - digits,
		.digits = digits,
		.number = strtoull(name + length - digits, NULL, 10),
	};
}

static bool same_prefix(const char *a, const char *b)
{
	struct numbered x = number_of(a), y = number_of(b);

	return x.digits && y.digits && x.prefix == y.prefix && strncmp(a, b, x.prefix) == 0;
}

/* The number that comes next, written with as many digits. */
static bool follows(const char *a, const char *b)
{
	struct numbered x = number_of(a), y = number_of(b);
	bool padded = b[y.prefix] == '0';

	return y.number == x.number + 1 &&
	       (x.digits == y.digits || (!padded && x.digits < y.digits && a[x.prefix] != '0'));
}

/* Writes names in that form, each number at the end of a name that follows the one before as part
 * of a range. */
static void fold_names(const char *const *names, size_t n, struct gf_text *out)
{
	size_t first, end, i, to;

	for (first = 0; first < n; first = end) {
		size_t prefix = number_of(names[first]).prefix;

		for (end = first + 1; end < n && same_prefix(names[first], names[end]);)
			end++;
		gf_text_addf(out, "%s", first ? "," : "");
		if (end == first + 1) {
			gf_text_addf(out, "%s", names[first]);
			continue;
		}
		gf_text_addf(out, "%.*s[", (int)prefix, names[first]);
		for (i = first; i < end; i = to + 1) {
			for (to = i; to + 1 < end && follows(names[to], names[to + 1]);)
				to++;
			gf_text_addf(out, "%s%s", i > first ? "," : "", names[i] + prefix);
			if (to > i)
				gf_text_addf(out, "-%s", names[to] + prefix);
		}
		gf_text_addf(out, "]");
	}
}

/* n hosts that are alike, on one line, and the parts of each. */
static void draw_run(const struct drawing *d, size_t first, size_t n, const char *lead)
{
	const struct gf_host *h = &d->t->hosts[first];
	GF_FREED const char **names = gf_xcalloc(n, sizeof(*names));
	GF_RELEASED(gf_text_release) struct gf_text facts = {0};

	for (size_t i = 0; i < n; i++)
		names[i] = h[i].name;
	fold_names(names, n, d->out);
	add_facts(h, &facts);
	if (n > 1)
		gf_text_addf(d->out, ": %zu hosts%s", n, facts.length ? ", each " : "");
	else if (facts.length)
		gf_text_addf(d->out, ": ");
	gf_text_addf(d->out, "%s\n", facts.length ? facts.data : "");
	add_parts(h, d->s, lead, d->out);
}

static void draw_hosts(const struct drawing *d, size_t first, size_t end, const char *lead)
{
	size_t n;

	for (; first < end; first += n) {
		bool last;
		GF_FREED char *below = NULL;

		n = run_at(d->t, first, end);
		last = first + n == end;
		below = gf_xasprintf("%s%s", lead, last ? d->s->blank : d->s->pass);
		gf_text_addf(d->out, "%s%s", lead, last ? d->s->last : d->s->branch);
		draw_run(d, first, n, below);
	}
}

/* The level whose groups are hosts on one switch; NULL: it is not known, or there is one group. */
static const struct gf_level *switches(const struct gf_topology *t)
{
	size_t ranks = 1, i;

	for (i = 0; t->nhosts && i < t->nlevels; i++) {
		if (ranks * t->nhosts == (size_t)t->ranks)
			return t->levels[i].size < t->nhosts ? &t->levels[i] : NULL;
		ranks *= t->levels[i].size;
	}
	return NULL;
}

static void draw_group(const struct drawing *d, const struct gf_level *l, size_t group)
{
	size_t first = group * l->size, end = first + l->size;
	bool last = end >= d->t->nhosts;
	const char *lead = last ? d->s->blank : d->s->pass;

	gf_text_addf(d->out, "%s%s %zu", last ? d->s->last : d->s->branch, l->name, group);
	if (run_at(d->t, first, end) == l->size) {
		gf_text_addf(d->out, ": ");
		draw_run(d, first, l->size, lead);
		return;
	}
	gf_text_addf(d->out, "\n");
	draw_hosts(d, first, end, lead);
}

void gf_tree_draw(const struct gf_topology *t, bool ascii, struct gf_text *out)
{
	const struct drawing d = {t, ascii ? &ascii_strokes : &unicode, out};
	const struct gf_level *l = switches(t);

	gf_text_addf(out, "topology %s (%s)", t->name, t->source);
	if (t->ranks > 0)
		gf_text_addf(out, ": %d rank%s", t->ranks, plural(t->ranks));
	gf_text_addf(out, "\n");
	draw_levels(&d);
	if (!l)
		draw_hosts(&d, 0, t->nhosts, "");
	for (size_t i = 0; l && i < t->nhosts / l->size; i++)
		draw_group(&d, l, i);
}

/* The lines of hosts, as gf_tree_draw has them. */
static void plot_hosts(const struct gf_topology *t, struct gf_plot *plot)
{
	static const struct strokes none = {"", "", "", ""};
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	const struct drawing d = {t, &none, &text};
	char *rest, *line;
	size_t first, n;

	for (first = 0; first < t->nhosts; first += n) {
		n = run_at(t, first, t->nhosts);
		draw_run(&d, first, n, "- ");
	}
	rest = text.data;
	while (rest && (line = strsep(&rest, "\n")) && *line) {
		gf_text_addf(&plot->csv, "host,,,,");
		gf_plot_label(&plot->csv, line);
		gf_text_addf(&plot->csv, "\n");
	}
}

void gf_tree_plot(const struct gf_topology *t, struct gf_plot *plot)
{
	size_t unit = 1, i;

	for (i = 0; i < t->nlevels; i++)
		unit *= t->levels[i].size;
	plot->script = "topology";
	gf_plot_text(plot, "title", "topology %s (%s)", t->name, t->source);
	gf_text_addf(&plot->csv, "kind,size,ranks,name,text\nlevel,1,%zu,,\n", unit);
	for (i = t->nlevels; i-- > 0;) {
		GF_RELEASED(gf_text_release) struct gf_text name = {0};
		const struct gf_level *l = &t->levels[i];

		unit /= l->size;
		gf_text_addf(&name, "%s x%zu: %s", l->name, l->size, l->link);
		gf_text_addf(&plot->csv, "level,%zu,%zu,", l->size, unit);
		gf_plot_label(&plot->csv, name.data);
		gf_text_addf(&plot->csv, ",%s", gf_human_link(l->bandwidth_bytes_per_s).text);
		if (l->bandwidth_origin != l->latency_origin)
			gf_text_addf(&plot->csv, " (%s)", gf_origin_names[l->bandwidth_origin]);
		gf_text_addf(&plot->csv, "; %s (%s)\n", gf_human_time(l->latency_s).text,
			     gf_origin_names[l->latency_origin]);
	}
	plot_hosts(t, plot);
}
