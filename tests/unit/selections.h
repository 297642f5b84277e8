/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_SELECTIONS_H
#define GF_TESTS_SELECTIONS_H

#include "documents/plan.h"
#include "documents/selections/selection.h"
#include "entry_facts.h"

/*
 * Selections for tests, from documents. A test of a property asks for the first selection of a
 * kind, with the keys of one of its cases (tests/entries/selection/NAME.json). A test of all
 * selections walks the registry. Only the tests of one selection say its name.
 *
 * What these functions return lives until the end, and no plan may release it.
 */

/* By traits and wires, which are no names. */
static const struct test_kind {
	const char *word;
	unsigned traits, without;
	int wire;   /* of the first message; -1: any */
	bool index; /* a set with indices */
} test_kinds[] = {
	{"plain", GF_SELECT_LOSSLESS, 0, -1, false},
	{"pieces", GF_SELECT_PIECES, 0, -1, false},
	{"gathered", GF_SELECT_SETS, GF_SELECT_MOMENTUM, GF_WIRE_GATHER, true},
	{"signs", GF_SELECT_SETS, GF_SELECT_MOMENTUM, GF_WIRE_GATHER, false},
	{"merged", GF_SELECT_SETS, 0, GF_WIRE_MERGE, true},
	{"momentum", GF_SELECT_MOMENTUM, 0, -1, true},
	{"shapes", GF_SELECT_SHAPES, 0, -1, false},
	{"seldom", GF_SELECT_SELDOM, 0, -1, false},
};

/* Whether it is of a kind, as its defaults go. */
static inline bool test_is_kind(const struct gf_select_plan *plan, const struct test_kind *kind)
{
	static const struct gf_tensor tensor = {
		.name = (char *)"t", .count_elems = 1 << 20, .dtype = GF_F32};
	struct gf_selection s = gf_selection_new(plan, plan->defaults);
	struct gf_wire wires[GF_WIRES_MOST];

	gf_selection_wire(&s, &tensor, 1, 0, wires);
	gf_selection_release(&s);
	return (plan->traits & kind->traits) == kind->traits && !(plan->traits & kind->without) &&
	       (kind->wire < 0 || (int)wires->kind == kind->wire) &&
	       (wires->among > 0) == kind->index;
}

/* The first entry of that kind; NULL: there is none. */
static inline const struct gf_select_plan *test_entry(const char *word, size_t length)
{
	size_t i, k;

	for (k = 0; k < sizeof(test_kinds) / sizeof(*test_kinds); k++)
		if (strlen(test_kinds[k].word) == length &&
		    strncmp(test_kinds[k].word, word, length) == 0)
			for (i = 0; gf_select_plans[i]; i++)
				if (test_is_kind(gf_select_plans[i], &test_kinds[k]))
					return gf_select_plans[i];
	return NULL;
}

/* By the keys of an object without a method. */
static inline struct gf_selection test_selection_keys(const struct gf_select_plan *plan,
						      struct gf_json_at *keys)
{
	struct gf_selection s = {.plan = plan};
	struct gf_error err = {""};

	s.params = entry_keep(gf_xcalloc(1, plan->record->bytes));
	if (gf_record_read(keys, plan->record, s.params, &err))
		entry_complain(&err);
	return s;
}

static inline struct gf_selection test_selection_at(const struct gf_select_plan *plan,
						    struct gf_json_at *at, const char *key)
{
	struct gf_error err = {""};
	struct gf_json_at keys;

	if (gf_json_object(at, key, &keys, &err))
		entry_complain(&err);
	return test_selection_keys(plan, &keys);
}

/* A case that the entry's file lacks is its "keys". */
static inline struct gf_selection test_selection_case(const struct gf_select_plan *plan,
						      const char *which)
{
	struct entry_facts f = entry_facts("selection", plan->name);
	struct gf_json_at cases = {0};
	struct gf_error err = {""};
	struct gf_selection s;

	if (gf_json_has(&f.at, "cases") && gf_json_object(&f.at, "cases", &cases, &err))
		entry_complain(&err);
	s = cases.value && gf_json_has(&cases, which) ? test_selection_at(plan, &cases, which)
						      : test_selection_at(plan, &f.at, "keys");
	gf_json_leave(&cases);
	entry_facts_release(&f);
	return s;
}

/* "KIND", or "KIND: CASE". Where no entry is of that kind, it is the plain one, as NULL is. */
static inline struct gf_selection test_selection(const char *words)
{
	const size_t length = words ? strcspn(words, ":") : 0;
	const struct gf_select_plan *plan = words ? test_entry(words, length) : NULL;

	return plan ? test_selection_case(plan, words[length] ? words + length + 2 : "")
		    : (struct gf_selection){0};
}

/* From a selection's object in a plan. For tests of that selection. */
static inline struct gf_selection test_selection_of(const char *object)
{
	struct gf_json *root = NULL;
	struct gf_selection s = {0};
	struct gf_error err = {""};
	struct gf_json_at at;
	int method = 0;

	if (gf_json_parse(object, strlen(object), object, &root, &err) ||
	    gf_json_root(root, object, &at, &err) ||
	    gf_json_choice(&at, "method", gf_select_plans_names, &method, &err))
		entry_complain(&err);
	s = test_selection_keys(gf_select_plans[method], &at);
	gf_json_free(root);
	return s;
}

/* Its object in a plan. */
static inline const char *test_written(struct gf_selection s)
{
	struct gf_json_writer w = {0};

	gf_json_open_line(&w, NULL);
	gf_json_put_string(&w, "method", gf_selection_name(&s));
	if (s.params)
		gf_record_write(&w, s.plan->record, s.params);
	gf_json_close_object(&w);
	w.text.data[strcspn(w.text.data, "\n")] = '\0';
	return entry_keep(gf_text_take(&w.text));
}

static inline const char *test_object(const char *words)
{
	return test_written(test_selection(words));
}

static inline const char *test_object_of(const struct gf_select_plan *plan, const char *which)
{
	return test_written(test_selection_case(plan, which));
}

/* Calls `each` with every selection that GF_TEST_ONLY leaves, and its facts. */
static inline void test_each_selection(void (*each)(const struct gf_select_plan *plan,
						    struct entry_facts *facts, void *ctx),
				       void *ctx)
{
	size_t i;

	for (i = 0; gf_select_plans[i]; i++)
		if (entry_is_wanted(gf_select_plans[i]->name)) {
			struct entry_facts f = entry_facts("selection", gf_select_plans[i]->name);

			each(gf_select_plans[i], &f, ctx);
			entry_facts_release(&f);
		}
}

#endif
