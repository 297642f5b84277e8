/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_ENTRY_FACTS_H
#define GF_TESTS_ENTRY_FACTS_H

#include "doc_test.h"
#include "json/record.h"

/*
 * Facts of one entry, which tests compare with what it does: tests/entries/KIND/NAME.json. A test
 * that walks the entries of a kind reads the part that it needs, and an entry whose file lacks that
 * part has no such case.
 */

/* Whether GF_TEST_ONLY leaves this entry to a walker (make check ONLY=NAME). */
static inline bool entry_is_wanted(const char *name)
{
	const char *only = getenv("GF_TEST_ONLY");

	return !only || !*only || strcmp(only, name) == 0;
}

/* Whether only one entry is walked, so that what all of them together must have is not asked. */
static inline bool entries_are_few(void)
{
	const char *only = getenv("GF_TEST_ONLY");

	return only && *only;
}

/* The lines of tests/entries/KIND/NAME.txt, "" if there is none; the caller frees. */
static inline char *entry_lines(const char *kind, const char *name)
{
	const char *source = getenv("GF_SOURCE");
	char *path = gf_xasprintf("%s/tests/entries/%s/%s.txt", source ? source : ".", kind, name);
	struct gf_error err = {""};
	char *text = NULL;
	size_t size;

	if (!entry_is_wanted(name) || gf_file_read(path, &text, &size, &err))
		text = gf_xstrdup("");
	free(path);
	return text;
}

/* The file, with a cursor on its root. A missing or broken file ends the test. */
struct entry_facts {
	struct gf_json *root;
	struct gf_json_at at;
	char *file;
};

static inline void entry_complain(const struct gf_error *err)
{
	printf("%s\n", err->text);
	exit(1);
}

static inline struct entry_facts entry_facts(const char *kind, const char *name)
{
	struct entry_facts f = {.file = gf_xasprintf("tests/entries/%s/%s.json", kind, name)};
	char *text = doc_load(f.file);
	struct gf_error err = {""};

	if (gf_json_parse(text, strlen(text), f.file, &f.root, &err) ||
	    gf_json_root(f.root, f.file, &f.at, &err))
		entry_complain(&err);
	free(text);
	return f;
}

static inline void entry_facts_release(struct entry_facts *f)
{
	gf_json_leave(&f->at);
	gf_json_free(f->root);
	free(f->file);
}

/* Calls `row` with each object of a list, if the file has that list. */
static inline void entry_rows(struct entry_facts *f, const char *key,
			      void (*row)(struct gf_json_at *at, void *ctx), void *ctx)
{
	struct gf_error err = {""};
	struct gf_json_at list;
	size_t n = 0, i;

	if (!gf_json_has(&f->at, key))
		return;
	if (gf_json_array(&f->at, key, &list, &n, &err))
		entry_complain(&err);
	for (i = 0; i < n; i++) {
		struct gf_json_at at;

		if (gf_json_object(gf_json_item(&list, i), NULL, &at, &err))
			entry_complain(&err);
		row(&at, ctx);
		gf_json_leave(&at);
	}
}

/* A member, or what stands for an absent one; a text is the caller's to free. */
static inline double entry_real(struct gf_json_at *at, const char *key, double absent)
{
	struct gf_error err = {""};
	double value = absent;

	if ((!key || gf_json_has(at, key)) && gf_json_real(at, key, -1e300, 1e300, &value, &err))
		entry_complain(&err);
	return value;
}

static inline size_t entry_size(struct gf_json_at *at, const char *key, size_t absent)
{
	return (size_t)entry_real(at, key, (double)absent);
}

static inline bool entry_bool(struct gf_json_at *at, const char *key)
{
	struct gf_error err = {""};
	bool value = false;

	if ((!key || gf_json_has(at, key)) && gf_json_bool(at, key, &value, &err))
		entry_complain(&err);
	return value;
}

static inline char *entry_text(struct gf_json_at *at, const char *key)
{
	struct gf_error err = {""};
	char *value = NULL;

	if ((!key || gf_json_has(at, key)) && gf_json_string(at, key, &value, &err))
		entry_complain(&err);
	return value;
}

/* An object as text. */
static inline char *entry_object(struct gf_json_at *at, const char *key)
{
	struct gf_error err = {""};
	char *value = NULL;

	if (gf_json_raw(at, key, &value, &err))
		entry_complain(&err);
	return value;
}

/* A text that lives until the end: tables of cases borrow it. */
static inline char *entry_keep(char *text)
{
	static char **kept;
	static size_t n;

	kept = gf_xreallocarray(kept, n + 1, sizeof(*kept));
	return kept[n++] = text;
}

#endif
