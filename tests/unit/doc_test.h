/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_DOC_TEST_H
#define GF_TESTS_DOC_TEST_H

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "json/json.h"
#include "test.h"

/*
 * Tests of a document reader: a valid document, and cases that replace one piece of it and expect a
 * message (NULL: still valid).
 */
struct doc_case {
	const char *from, *to, *message;
};

/* Reads, and writes what was read; NULL with a reason on failure. */
typedef char *doc_round_trip(const struct gf_json *root, const char *file, struct gf_error *err);

static inline char *doc_replaced(const char *text, const char *from, const char *to)
{
	const char *found = strstr(text, from);
	struct gf_text out = {0};

	if (!found) {
		printf("the case's text is not in the document: %s\n", from);
		exit(1);
	}
	gf_text_add(&out, text, (size_t)(found - text));
	gf_text_add(&out, to, strlen(to));
	gf_text_add(&out, found + strlen(from), strlen(found + strlen(from)));
	return gf_text_take(&out);
}

static inline char *doc_read(const char *text, const char *file, doc_round_trip *trip,
			     struct gf_error *err)
{
	struct gf_json *root;
	char *written;

	if (gf_json_parse(text, strlen(text), file, &root, err))
		return NULL;
	written = trip(root, file, err);
	gf_json_free(root);
	return written;
}

/* A written document reads back to the same bytes. */
static inline void doc_expect_stable(const char *text, const char *name, doc_round_trip *trip)
{
	struct gf_error err = {""};
	char *first = doc_read(text, name, trip, &err), *second;

	EXPECT(first, "%s: %s", name, err.text);
	if (!first)
		return;
	second = doc_read(first, name, trip, &err);
	EXPECT(second, "%s as written: %s", name, err.text);
	if (second)
		EXPECT_TEXT(second, first);
	free(first);
	free(second);
}

static inline void doc_run_cases(const char *base, const char *file, doc_round_trip *trip,
				 const struct doc_case *cases, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		char *text = doc_replaced(base, cases[i].from, cases[i].to);
		struct gf_error err = {""};
		char *written = doc_read(text, file, trip, &err);

		if (cases[i].message) {
			EXPECT(!written, "%s", cases[i].to);
			EXPECT_TEXT(err.text, cases[i].message);
		} else {
			EXPECT(written, "%s: %s", cases[i].to, err.text);
			doc_expect_stable(text, cases[i].to, trip);
		}
		free(written);
		free(text);
	}
}

/* A file of the source tree. */
static inline char *doc_load(const char *path)
{
	const char *source = getenv("GF_SOURCE");
	char *full = gf_xasprintf("%s/%s", source ? source : ".", path);
	struct gf_error err;
	char *text;
	size_t size;

	if (gf_file_read(full, &text, &size, &err)) {
		printf("%s\n", err.text);
		exit(1);
	}
	free(full);
	return text;
}

#endif
