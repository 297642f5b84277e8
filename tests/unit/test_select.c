/* SPDX-License-Identifier: BSD-3-Clause */
/* Every entry of the registry of selections, and what entries say of the wire; keys that people
 * type. */
#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "documents/stream.h"
#include "json/keys.h"
#include "selections.h"
#include "test.h"

static const struct gf_tensor tensors[] = {
	{.name = "a", .count_elems = 1000, .dtype = GF_F32},
	{.name = "b", .count_elems = 24, .dtype = GF_F32},
};

/* What others rely on without asking. */
static void test_entries(void)
{
	const struct gf_select_plan *p;
	struct gf_wire wires[GF_WIRES_MOST];
	size_t i, k, n;

	for (i = 0; gf_select_plans[i]; i++) {
		struct gf_selection s =
			gf_selection_new(gf_select_plans[i], gf_select_plans[i]->defaults);
		bool adds;

		p = gf_select_plans[i];
		adds = p->traits & GF_SELECT_ADDS;
		EXPECT_TEXT(gf_select_plans_names[i], p->name);
		EXPECT(gf_select_plan_find(p->name) == p, "%s", p->name);
		EXPECT(p->description && p->source, "%s", p->name);
		/* either numbers, or why no codec goes on top */
		EXPECT(!(adds && p->encoding), "%s: encoding", p->name);
		EXPECT(!(adds && p->traits & GF_SELECT_SETS), "%s", p->name);
		n = gf_selection_wire(&s, tensors, GF_ARRAY_LENGTH(tensors), 0, wires);
		EXPECT(n >= 1 && n <= GF_WIRES_MOST, "%s: %zu", p->name, n);
		for (k = 0; k < n; k++) {
			EXPECT((wires[k].kind == GF_WIRE_REDUCE) == adds, "%s: wire %zu", p->name,
			       k);
			EXPECT(wires[k].size_bytes >= 1 && wires[k].count_elems >= 1,
			       "%s: wire %zu", p->name, k);
			EXPECT(wires[k].share == 1 || p->traits & GF_SELECT_RECUTS, "%s: share %g",
			       p->name, wires[k].share);
		}
		gf_selection_release(&s);
	}
	EXPECT(!gf_select_plans_names[i], "as many names as entries");
	EXPECT(!gf_select_plan_find("densest"), "found");
}

static void test_zeroed(void)
{
	struct gf_selection none = {0}, copy = gf_selection_copy(&none);

	EXPECT_TEXT(gf_selection_name(&copy), "dense");
	EXPECT(gf_selection_has(&copy, GF_SELECT_LOSSLESS | GF_SELECT_ADDS), "dense");
	EXPECT(!gf_selection_has(&copy, GF_SELECT_ADDS | GF_SELECT_SETS), "not all of them");
	gf_selection_release(&copy);
}

/* What its file says that the reference tensors send. */
static void compare_wires(struct gf_json_at *at, void *ctx)
{
	static const char *const kinds[] = {"reduce", "gather", "merge", NULL};
	const struct gf_selection s = test_selection_at(ctx, at, "keys");
	struct gf_wire got[GF_WIRES_MOST];
	struct gf_error err = {""};
	struct gf_json_at list, row;
	size_t nwant = 0, members, n, k;

	n = gf_selection_wire(&s, tensors, GF_ARRAY_LENGTH(tensors), 0, got);
	EXPECT(!gf_json_array(at, "sends", &list, &nwant, &err) && nwant == n, "%s: %zu wires, %s",
	       s.plan->name, n, err.text);
	for (k = 0; k < n && k < nwant; k++) {
		double want[4] = {0};
		int kind = -1;
		size_t i;

		EXPECT(!gf_json_array(gf_json_item(&list, k), NULL, &row, &members, &err) &&
			       members == 5 &&
			       !gf_json_choice(gf_json_item(&row, 0), NULL, kinds, &kind, &err),
		       "%s", err.text);
		for (i = 0; i < 4; i++)
			want[i] = entry_real(gf_json_item(&row, i + 1), NULL, 0);
		EXPECT((int)got[k].kind == kind && got[k].count_elems == want[0] &&
			       got[k].size_bytes == want[1] && got[k].share == want[2] &&
			       (double)got[k].among == want[3],
		       "%s, wire %zu: kind %d, %g elements, %g bytes, share %g, among %zu",
		       s.plan->name, k, (int)got[k].kind, got[k].count_elems, got[k].size_bytes,
		       got[k].share, got[k].among);
	}
}

/* In epochs of 10 steps. */
static void compare_facts(const struct gf_select_plan *plan, struct entry_facts *f, void *ctx)
{
	struct gf_selection s = gf_selection_new(plan, plan->defaults);

	(void)ctx;
	EXPECT(gf_json_has(&f->at, "wires"), "%s: want wires", f->file);
	entry_rows(f, "wires", compare_wires, (void *)plan);
	EXPECT(gf_selection_warmup(&s, 10) == entry_size(&f->at, "warmup_steps", 0), "%s: %zu",
	       plan->name, gf_selection_warmup(&s, 10));
	gf_selection_release(&s);
}

/* --- keys as people type them ----------------------------------------------
 */

/* A key that several selections have takes the same in all. */
static void test_keys(void)
{
	const struct gf_field *f, *other;
	size_t i, k, n;

	for (i = 0; gf_select_plans[i]; i++)
		for (f = gf_select_plans[i]->record->fields; f->key; f++)
			EXPECT(f->unit && f->help, "%s: nobody can set %s",
			       gf_select_plans_names[i], f->key);
	for (i = 0; gf_select_plans[i]; i++)
		for (k = 0; (f = gf_keys_at(gf_select_plans[i]->record, k)); k++)
			for (n = 0; n < i; n++) {
				other = gf_keys_find(gf_select_plans[n]->record, f->key);
				EXPECT(!other || strcmp(other->key, f->key) != 0 ||
					       (other->type == f->type && other->low == f->low &&
						other->high == f->high &&
						strcmp(other->unit, f->unit) == 0),
				       "%s: %s", gf_select_plans_names[i], f->key);
			}
}

struct wanted {
	const char *key, *text;
	bool found;
};

static void find_help(void *wanted, const struct gf_field *f, const char *help)
{
	struct wanted *w = wanted;

	if (strcmp(f->key, w->key) == 0 && strstr(help, w->text))
		w->found = true;
}

static void compare_help(const struct gf_select_plan *plan, struct entry_facts *f, void *ctx)
{
	static const struct gf_registry selections = {gf_select_plans, 0, NULL};
	struct gf_error err = {""};
	const char *key = NULL;
	struct gf_json_at help;

	(void)plan;
	(void)ctx;
	if (!gf_json_has(&f->at, "help"))
		return;
	EXPECT(!gf_json_object(&f->at, "help", &help, &err), "%s", err.text);
	while ((key = gf_json_next_key(&help, key))) {
		char *want = entry_text(&help, key);
		struct wanted w = {key, want, false};

		gf_keys_each(&selections, NULL, find_help, &w);
		EXPECT(w.found, "%s: want %s", key, want);
		free(want);
	}
	gf_json_leave(&help);
}

/* --- keys of two entries that are this test's ------------------------------ */

struct sends {
	double share;
	double *first;
	size_t nfirst;
	int way;
	char *extra; /* x- keys */
};

#define AT(member) offsetof(struct sends, member)
static const char *const ways[] = {"paper", "conserve", "naive", NULL};
static const char *const none[] = {"none", NULL};
static const struct gf_field set_fields[] = {
	{"share", GF_FIELD_REAL, .offset = AT(share), .low = GF_MIN_SHARE, .high = 1,
	 .unit = "SHARE", .help = "what is sent"},
	{"first", GF_FIELD_REALS, GF_DEFAULTED, .offset = AT(first), .count_offset = AT(nfirst),
	 .low = GF_MIN_SHARE, .high = 1, .names = none, .unit = "LIST",
	 .help = "of the first epochs"},
	{"way", GF_FIELD_CHOICE, GF_DEFAULTED, .offset = AT(way), .names = ways, .unit = "WAY",
	 .help = "what becomes of the rest"},
	{"hidden", GF_FIELD_REAL, GF_DEFAULTED, .offset = AT(share), .high = 1},
	{NULL},
};
static const struct gf_field chunk_fields[] = {
	{"share", GF_FIELD_REAL, .offset = AT(share), .low = GF_MIN_SHARE, .high = 1,
	 .unit = "SHARE", .help = "what is sent"},
	{"keep", GF_FIELD_REAL, .offset = AT(share), .high = 1, .unit = "SHARE",
	 .help = "what is kept"},
	{NULL},
};
#undef AT
static const struct gf_record set_record = {GF_RECORD(struct sends, set_fields)};
static const struct gf_record chunk_record = {GF_RECORD(struct sends, chunk_fields)};
static double first_shares[] = {.25, .5};
static const struct sends set_defaults = {.share = .001, .first = first_shares, .nfirst = 2};
static const struct sends chunk_defaults = {.share = .1};
static const struct gf_entry set_entry = {
	.name = "sets", .record = &set_record, .defaults = &set_defaults};
static const struct gf_entry chunk_entry = {
	.name = "chunks", .record = &chunk_record, .defaults = &chunk_defaults};
static const struct gf_entry *const entries[] = {&set_entry, &chunk_entry, NULL};
static const struct gf_registry sending = {entries, 0, NULL};

static void add_line(void *text, const struct gf_field *f, const char *help)
{
	gf_text_addf(text, "%s=%s %s\n", f->key, f->unit, help);
}

static void test_help(void)
{
	struct gf_text text = {0};

	gf_keys_each(&sending, NULL, add_line, &text);
	EXPECT_TEXT(text.data, "share=SHARE sets, chunks: what is sent (0.001; chunks: 0.1)\n"
			       "first=LIST sets: of the first epochs (0.25,0.5)\n"
			       "way=WAY sets: what becomes of the rest (paper)\n"
			       "keep=SHARE chunks: what is kept (0.1)\n");
	gf_text_release(&text);
}

static void test_set(void)
{
	static const struct {
		const char *text, *refused, *now; /* what it then is */
	} cases[] = {
		{"share=0.5", NULL, "0.5 paper 0.25 0.5"},
		{"share=5%,way=naive", NULL, "0.05 naive 0.25 0.5"},
		{"first=0.5,0.125,share=1", NULL, "1 paper 0.5 0.125"},
		{"first=none", NULL, "0.001 paper"},
		{"share=.5,share=.25", NULL, "0.25 paper 0.25 0.5"},
		{"s=.5,fir=1", NULL, "0.5 paper 1"},
		{"share=0", "share: want a number from 1e-12 to 1, got \"0\"", NULL},
		{"way=all", "way: want paper, conserve or naive, got \"all\"", NULL},
		{"first=0.5,", "first: want a number from 1e-12 to 1, got \"\"", NULL},
		{"keep=0.5", "want share, first or way, got \"keep\"", NULL},
		{"hidden=0.5", "want share, first or way, got \"hidden\"", NULL},
		{"shore=1", "want share, first or way, got \"shore\"; did you mean \"share\"?",
		 NULL},
		{"share", "want share=SHARE, got no value", NULL},
		{"", "want share, first or way, got \"\"", NULL},
		{"0.5,share=1", "want share, first or way, got \"0.5\"", NULL},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_error err = {""};
		struct gf_text now = {0};
		struct sends keys;
		struct gf_keyed of = {&set_record, &keys};
		int rc;

		gf_record_copy(&set_record, &keys, &set_defaults);
		rc = gf_keys_set(cases[i].text, &of, 1, false, &err);
		EXPECT(!rc == !cases[i].refused, "%s: %s", cases[i].text, err.text);
		if (cases[i].refused)
			EXPECT_TEXT(err.text, cases[i].refused);
		gf_text_addf(&now, "%g %s", keys.share, ways[keys.way]);
		for (k = 0; k < keys.nfirst; k++)
			gf_text_addf(&now, " %g", keys.first[k]);
		if (cases[i].now)
			EXPECT_TEXT(now.data, cases[i].now);
		gf_text_release(&now);
		gf_record_release(&set_record, &keys);
	}
}

/* The first record that has a key takes it; one without a struct checks alone. */
static void test_several(void)
{
	struct sends keys = {.share = .5};
	const struct gf_keyed of[] = {{&chunk_record, &keys}, {&set_record, NULL}};
	struct gf_error err = {""};

	EXPECT(!gf_keys_set("keep=.25,way=naive", of, 2, false, &err), "%s", err.text);
	EXPECT(keys.share == .25 && keys.way == 0, "share %g, way %d", keys.share, keys.way);
	EXPECT(gf_keys_set("way=all", of, 2, false, &err) == -EINVAL, "checked");
	EXPECT(!gf_keys_set("way=naive,keep=.75", of, 1, true, &err), "%s", err.text);
	EXPECT(keys.share == .75, "share %g", keys.share);
	EXPECT(!gf_keys_set(NULL, of, 1, false, &err), "none");
	EXPECT(gf_keys_have("first=1,2,way=naive", "way"), "has way");
	EXPECT(!gf_keys_have("first=1,2", "way") && !gf_keys_have(NULL, "way"), "has none");
}

/* --- documents ------------------------------------------------------------- */

static char *pair; /* a plan of two tensors */

static int read_plan(const char *text, const char *file, struct gf_documents *d,
		     struct gf_error *err)
{
	*d = (struct gf_documents){0};
	return gf_documents_add_text(d, text, strlen(text), file, err);
}

/* The pair with other members, which come from the entry's file. */
static void refuse(struct gf_json_at *at, void *ctx)
{
	char *plan = entry_object(at, "plan"), *text = gf_json_merge(plan, pair);
	char *want = entry_text(at, "text");
	char *whole = gf_xasprintf("p.json: %s", want);
	struct gf_error err = {"accepted"};
	struct gf_documents d;

	(void)ctx;
	EXPECT(read_plan(text, "p.json", &d, &err) == -EINVAL, "%s", plan);
	EXPECT_TEXT(err.text, whole);
	gf_documents_release(&d);
	free(whole);
	free(want);
	free(text);
	free(plan);
}

static void accept(const char *plan)
{
	char *text = gf_json_merge(plan, pair), *first, *second;
	struct gf_documents d, again;
	struct gf_error err = {""};

	EXPECT(!read_plan(text, "p.json", &d, &err), "%s: %s", plan, err.text);
	if (d.plan) {
		first = gf_plan_write(d.plan);
		EXPECT(!read_plan(first, "written", &again, &err), "%s: %s", plan, err.text);
		second = again.plan ? gf_plan_write(again.plan) : gf_xstrdup("none");
		EXPECT_TEXT(second, first);
		gf_documents_release(&again);
		free(first);
		free(second);
	}
	gf_documents_release(&d);
	free(text);
}

static void accept_row(struct gf_json_at *at, void *ctx)
{
	char *plan = entry_object(at, NULL);

	(void)ctx;
	accept(plan);
	free(plan);
}

/* What a trait allows, refused without it. */
static void try_traits(const struct gf_select_plan *plan, const struct gf_selection *s)
{
	static const struct {
		unsigned trait;
		const char *members, *before, *after;
	} cases[] = {
		{GF_SELECT_HALVES,
		 "\"messages\": [{\"first\": 0, \"last\": 1, \"mode\": \"normal\", \"release\": "
		 "\"ready\", \"half\": \"split\", \"algorithm\": \"ring\", \"codec\": \"f32\"}]",
		 "/messages/0/half: want \"all\" with selection ", ", got \"split\""},
		{GF_SELECT_SERVERS,
		 "\"servers\": 1, \"messages\": [{\"first\": 0, \"last\": 1, \"mode\": \"normal\", "
		 "\"release\": \"ready\", \"algorithm\": \"ps\", \"codec\": \"f32\"}]",
		 "/servers: want 0 with selection ", ", which no server can add up, got 1"},
	};
	struct gf_json_writer w = {0};
	size_t i;

	gf_json_open_line(&w, NULL);
	gf_json_put_string(&w, "method", plan->name);
	gf_record_write(&w, plan->record, s->params);
	gf_json_close_object(&w);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *members =
			gf_xasprintf("{\"selection\": %s, %s}", w.text.data, cases[i].members);
		char *text = gf_json_merge(members, pair);
		char *want = gf_xasprintf("p.json: %s%s", cases[i].before, plan->name);
		struct gf_error err = {"accepted"};
		struct gf_documents d;
		int rc = read_plan(text, "p.json", &d, &err);

		EXPECT((rc == 0) == !!(plan->traits & cases[i].trait), "%s: %s", plan->name,
		       err.text);
		EXPECT(!rc || (strncmp(err.text, want, strlen(want)) == 0 &&
			       strstr(err.text, cases[i].after)),
		       "want %s...%s, got %s", want, cases[i].after, err.text);
		gf_documents_release(&d);
		free(want);
		free(text);
		free(members);
	}
	gf_text_release(&w.text);
}

static void compare_documents(const struct gf_select_plan *plan, struct entry_facts *f, void *ctx)
{
	struct gf_selection s =
		test_selection_at(plan, &f->at, gf_json_has(&f->at, "tiny") ? "tiny" : "keys");

	(void)ctx;
	try_traits(plan, &s);
	entry_rows(f, "refused", refuse, NULL);
	entry_rows(f, "accepted", accept_row, NULL);
}

int main(void)
{
	pair = doc_load("tests/data/valid/plan-pair.json");
	test_entries();
	test_zeroed();
	test_each_selection(compare_facts, NULL);
	test_keys();
	test_help();
	test_each_selection(compare_help, NULL);
	test_set();
	test_several();
	test_each_selection(compare_documents, NULL);
	free(pair);
	return TEST_END();
}
