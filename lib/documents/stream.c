/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/stream.h"

#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/heap.h"
#include "json/record.h"
#include "lists/gf_document_formats.h"

/* --- the formats --------------------------------------------------------- */

/* One format of document, and where struct gf_documents keeps it. */
struct format {
	const struct gf_document_format *kind;
	size_t document, digest, file;            /* offsets in struct gf_documents */
	char *(*write_own)(const void *document); /* (optional: as its record says) */
	/* Two that differ become one; b is left empty (optional). */
	int (*combine)(void *a, void *b, struct gf_error *err);
};

static char *write_plan(const void *plan)
{
	return gf_plan_write(plan);
}

static int combine_profiles(void *a, void *b, struct gf_error *err)
{
	return gf_profile_combine(a, b, err);
}

#define FORMAT(type)                                                                               \
	.kind = &gf_document_##type, .document = offsetof(struct gf_documents, type),              \
	.digest = offsetof(struct gf_documents, type##_digest),                                    \
	.file = offsetof(struct gf_documents, type##_file)
static const struct format formats[] = {
	{FORMAT(topology)},
	{FORMAT(profile), .combine = combine_profiles},
	{FORMAT(plan), .write_own = write_plan},
	{FORMAT(model)},
	{FORMAT(training)},
};
#undef FORMAT

static char *write_document(const struct format *f, const void *document)
{
	return f->write_own ? f->write_own(document) : gf_document_write(f->kind, document);
}

static void **slot_of(struct gf_documents *d, const struct format *f)
{
	return (void **)((char *)d + f->document);
}

static char *digest_of(struct gf_documents *d, const struct format *f)
{
	return (char *)d + f->digest;
}

static char **file_of(struct gf_documents *d, const struct format *f)
{
	return (char **)((char *)d + f->file);
}

static void free_document(const struct format *f, void *document)
{
	gf_list_free(f->kind->record, document, 1);
}

/* --- adding -------------------------------------------------------------- */

static int find_format(const struct gf_json *root, const char *file, const struct format **found,
		       struct gf_error *err)
{
	const char *names[GF_ARRAY_LENGTH(formats) + 1] = {NULL};
	struct gf_json_at at;
	int index, rc;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(formats); i++)
		names[i] = formats[i].kind->name;
	rc = gf_json_root(root, file, &at, err);
	if (rc)
		return rc;
	rc = gf_json_choice(&at, "format", names, &index, err);
	if (!rc)
		*found = &formats[index];
	gf_json_leave(&at);
	return rc;
}

static int refuse_second(const struct format *f, const char *first, const char *second,
			 struct gf_error *err)
{
	return gf_error_set(err, -EINVAL, "%s and %s: want one %s, got two that differ", first,
			    second, f->kind->name);
}

/* Are two that differ kept side by side? */
static bool gathers(const struct gf_documents *d, const struct format *f)
{
	return d->several_plans && f->document == offsetof(struct gf_documents, plan);
}

/* Takes p. */
static void gather(struct gf_documents *d, struct gf_plan *p, const char digest[GF_DIGEST_TEXT],
		   const char *file)
{
	struct gf_other_plan *other;

	for (size_t i = 0; i < d->nother_plans; i++)
		if (strcmp(d->other_plans[i].digest, digest) == 0) {
			gf_plan_release(p);
			free(p);
			return;
		}
	other = gf_array_push(&d->other_plans, &d->nother_plans, &d->other_capacity);
	other->plan = p;
	other->file = gf_xstrdup(file);
	memcpy(other->digest, digest, sizeof(other->digest));
}

/* Makes one document of d's and a second that differs from it; the second is taken unless that
 * fails, and then nothing has changed. */
static int combine(struct gf_documents *d, const struct format *f, void *second, const char *digest,
		   const char *file, struct gf_error *err)
{
	void *first = *slot_of(d, f);
	GF_FREED char *text = NULL;
	int rc;

	if (gathers(d, f)) {
		gather(d, second, digest, file);
		return 0;
	}
	if (!f->combine)
		return refuse_second(f, *file_of(d, f), file, err);
	rc = f->combine(first, second, err);
	if (rc) {
		gf_error_prefix(err, "%s and %s", *file_of(d, f), file);
		return rc;
	}
	text = write_document(f, first);
	gf_digest_text(text, strlen(text), digest_of(d, f));
	free_document(f, second);
	return 0;
}

static void pass_on(struct gf_documents *d, const char *text)
{
	gf_text_add(&d->passed_on, text, strlen(text));
}

static int add_root(struct gf_documents *d, const struct gf_json *root, const char *file,
		    struct gf_error *err)
{
	const struct format *f = NULL;
	GF_FREED char *text = NULL;
	char digest[GF_DIGEST_TEXT];
	void *document;
	int rc = find_format(root, file, &f, err);

	if (rc)
		return rc;
	document = gf_xcalloc(1, f->kind->record->bytes);
	rc = gf_document_read(root, file, f->kind, document, err);
	if (rc) {
		free(document);
		return rc;
	}
	text = write_document(f, document);
	gf_digest_text(text, strlen(text), digest);
	if (!*slot_of(d, f)) {
		*slot_of(d, f) = document;
		*file_of(d, f) = gf_xstrdup(file);
		memcpy(digest_of(d, f), digest, sizeof(digest));
		pass_on(d, text);
	} else if (strcmp(digest, digest_of(d, f)) == 0) {
		free_document(f, document);
	} else {
		rc = combine(d, f, document, digest, file, err);
		if (rc)
			free_document(f, document);
		else
			pass_on(d, text);
	}
	return rc;
}

/* Every document of a text, into a struct of its own. */
static int read_all(struct gf_documents *fresh, const char *text, size_t size, const char *file,
		    struct gf_error *err)
{
	struct gf_json *root;
	size_t used = 0, count;
	int rc;

	for (count = 0;; count++) {
		rc = gf_json_parse_next(text, size, file, &used, &root, err);
		if (rc || !root)
			break;
		rc = add_root(fresh, root, file, err);
		gf_json_free(root);
		if (rc)
			break;
	}
	if (!rc && !count)
		rc = gf_error_set(err, -EINVAL, "%s: want a document, got nothing", file);
	return rc;
}

static bool differ(struct gf_documents *a, struct gf_documents *b, const struct format *f)
{
	return *slot_of(a, f) && *slot_of(b, f) && strcmp(digest_of(a, f), digest_of(b, f)) != 0;
}

/* The other plans, which have gone elsewhere, are forgotten. */
static void free_files(struct gf_documents *d)
{
	for (size_t i = 0; i < d->nother_plans; i++)
		free(d->other_plans[i].file);
	free(d->other_plans);
	d->other_plans = NULL;
	d->other_capacity = 0;
	d->nother_plans = 0;
}

/* Moves the documents of `fresh` to d. The steps that can fail come first: the formats that allow
 * one document only, then the one format whose documents combine. */
static int merge(struct gf_documents *d, struct gf_documents *fresh, struct gf_error *err)
{
	const struct format *f, *end = formats + GF_ARRAY_LENGTH(formats);
	int rc;

	for (f = formats; f < end; f++)
		if (differ(d, fresh, f) && !f->combine && !gathers(d, f))
			return refuse_second(f, *file_of(d, f), *file_of(fresh, f), err);
	for (f = formats; f < end; f++) {
		if (!differ(d, fresh, f))
			continue;
		rc = combine(d, f, *slot_of(fresh, f), digest_of(fresh, f), *file_of(fresh, f),
			     err);
		if (rc)
			return rc;
		*slot_of(fresh, f) = NULL;
	}
	for (f = formats; f < end; f++) {
		if (!*slot_of(fresh, f) || *slot_of(d, f))
			continue;
		*slot_of(d, f) = *slot_of(fresh, f);
		*file_of(d, f) = *file_of(fresh, f);
		memcpy(digest_of(d, f), digest_of(fresh, f), sizeof(d->plan_digest));
		*slot_of(fresh, f) = NULL;
		*file_of(fresh, f) = NULL;
	}
	for (size_t i = 0; i < fresh->nother_plans; i++)
		gather(d, fresh->other_plans[i].plan, fresh->other_plans[i].digest,
		       fresh->other_plans[i].file);
	free_files(fresh);
	return 0;
}

int gf_documents_require(const struct gf_documents *d, const char *format, struct gf_error *err)
{
	const char *other = NULL;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(formats); i++) {
		if (!*slot_of((struct gf_documents *)d, &formats[i]))
			continue;
		if (strcmp(formats[i].kind->name, format) == 0)
			return 0;
		other = formats[i].kind->name;
	}
	return gf_error_set(err, -EINVAL, "want a %s document, found %s%s", format,
			    other ? "a " : "none", other ? other : "");
}

/* One more parameter than elsewhere: what the three verbs below differ in. */
static int add_text(struct gf_documents *d, const char *text, size_t size, const char *name,
		    const char *format, struct gf_error *err)
{
	bool from_stdin = strcmp(name, "-") == 0;
	GF_RELEASED(gf_documents_release)
	struct gf_documents fresh = {.several_plans = d->several_plans};
	int rc;

	if (from_stdin)
		name = "standard input";
	rc = read_all(&fresh, text, size, name, err);
	if (!rc && format) {
		rc = gf_documents_require(&fresh, format, err);
		if (rc)
			gf_error_prefix(err, "%s", name);
	}
	rc = rc ?: merge(d, &fresh, err);
	if (!rc && from_stdin && fresh.passed_on.data)
		pass_on(d, fresh.passed_on.data);
	return rc;
}

int gf_documents_add_text(struct gf_documents *d, const char *text, size_t size, const char *name,
			  struct gf_error *err)
{
	return add_text(d, text, size, name, NULL, err);
}

int gf_documents_add_of(struct gf_documents *d, const char *path, const char *format,
			struct gf_error *err)
{
	GF_FREED char *text = NULL;
	size_t size;
	int rc = gf_file_read(path, &text, &size, err);

	return rc ?: add_text(d, text, size, path, format, err);
}

int gf_documents_take_costs(void *documents, const char *path, struct gf_error *err)
{
	GF_RELEASED(gf_documents_release) struct gf_documents fresh = {0};
	int rc = gf_documents_take(&fresh, path, err);

	if (rc == 0 && !fresh.topology && !(fresh.profile && fresh.profile->network))
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a topology or a profile with a network, found none",
				  path);
	return rc ?: merge(documents, &fresh, err);
}

int gf_documents_take(void *documents, const char *path, struct gf_error *err)
{
	return gf_documents_add_of(documents, path, NULL, err);
}

int gf_documents_take_model(void *documents, const char *path, struct gf_error *err)
{
	return gf_documents_add_of(documents, path, "gf-model", err);
}

void gf_documents_release(struct gf_documents *d)
{
	for (size_t i = 0; i < GF_ARRAY_LENGTH(formats); i++) {
		free_document(&formats[i], *slot_of(d, &formats[i]));
		free(*file_of(d, &formats[i]));
	}
	for (size_t i = 0; i < d->nother_plans; i++) {
		gf_plan_release(d->other_plans[i].plan);
		free(d->other_plans[i].plan);
	}
	free_files(d);
	gf_text_release(&d->passed_on);
	memset(d, 0, sizeof(*d));
}
