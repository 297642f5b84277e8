/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/markup.h"

#include <expat.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"

struct reader {
	XML_Parser parser;
	/* the open elements, the root first */
	struct gf_markup *open[GF_MARKUP_DEPTH], *root;
	int depth;
	struct gf_text text; /* since the last tag */
	const char *refused; /* NULL: nothing was */
};

static void refuse(struct reader *r, const char *want)
{
	if (!r->refused)
		r->refused = want;
	XML_StopParser(r->parser, XML_FALSE);
}

/* Newer versions of expat have one function more, for where a long has 32 bits, and call this one
 * deprecated. */
static size_t line_of(XML_Parser parser)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	return XML_GetCurrentLineNumber(parser);
#pragma GCC diagnostic pop
}

static void on_start(void *reader, const char *name, const char **attributes)
{
	struct reader *r = reader;
	struct gf_markup *e;

	gf_text_release(&r->text);
	if (r->depth == GF_MARKUP_DEPTH) {
		refuse(r, "at most 64 elements inside each other, got more");
		return;
	}
	e = gf_markup_new(r->depth ? r->open[r->depth - 1] : NULL, name, line_of(r->parser));
	if (r->depth == 0)
		r->root = e;
	r->open[r->depth++] = e;
	for (; attributes[0]; attributes += 2) {
		if (e->nattributes == 2 * GF_MARKUP_ATTRIBUTES) {
			refuse(r, "at most 100 attributes, got more");
			return;
		}
		gf_markup_set(e, attributes[0], attributes[1]);
	}
}

static void on_text(void *reader, const char *text, int length)
{
	gf_text_add(&((struct reader *)reader)->text, text, (size_t)length);
}

static void on_end(void *reader, const char *name)
{
	struct reader *r = reader;

	(void)name;
	r->depth--;
	if (r->text.length && strspn(r->text.data, " \t\r\n") < r->text.length)
		gf_markup_set(r->open[r->depth], "", r->text.data);
	gf_text_release(&r->text);
}

static void on_doctype(void *reader, const char *name, const char *system, const char *public,
		       int internal)
{
	(void)name;
	(void)system;
	(void)public;
	if (internal)
		refuse(reader, "XML without definitions in its DOCTYPE, got some");
}

static void *resize(void *old, size_t size)
{
	return gf_xreallocarray(old, size, 1);
}

int gf_xml_parse(const char *text, const char *path, struct gf_markup **root, struct gf_error *err)
{
	static const XML_Memory_Handling_Suite heap = {gf_xmalloc, resize, free};
	struct reader r = {.parser = XML_ParserCreate_MM(NULL, &heap, NULL)};
	size_t left = strlen(text), line;
	const size_t most = 1 << 20;
	int rc = 0;

	if (!r.parser)
		return gf_error_set(err, -ENOMEM, "%s: expat: no memory", path);
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, on_start, on_end);
	XML_SetCharacterDataHandler(r.parser, on_text);
	XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
	while (rc == 0) {
		size_t n = left < most ? left : most;

		left -= n;
		if (!XML_Parse(r.parser, text, (int)n, left == 0))
			rc = -EINVAL;
		if (left == 0)
			break;
		text += n;
	}
	line = line_of(r.parser);
	if (rc < 0 && r.refused)
		gf_error_set(err, rc, "%s:%zu: want %s", path, line, r.refused);
	else if (rc < 0)
		gf_error_set(err, rc, "%s:%zu: want whole XML, got %s", path, line,
			     XML_GetErrorCode(r.parser) == XML_ERROR_NO_ELEMENTS
				     ? "the end of the file"
				     : XML_ErrorString(XML_GetErrorCode(r.parser)));
	XML_ParserFree(r.parser);
	gf_text_release(&r.text);
	if (rc < 0)
		gf_markup_free(r.root);
	else
		*root = r.root;
	return rc;
}
