/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/xml.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/* PCI trees are a few bridges deep. */
enum { DEPTH_MAX = 64, MOST_ATTRIBUTES = 100 };

struct reader {
	const char *at, *path;
	size_t line;
	struct gf_error *err;
};

static int refuse(struct reader *r, const char *want)
{
	char got[24];
	size_t n = strcspn(r->at, "\r\n");

	n = n < sizeof(got) - 1 ? n : sizeof(got) - 1;
	memcpy(got, r->at, n);
	got[n] = '\0';
	if (!*r->at)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: want %s, got the end of the file",
				    r->path, r->line, want);
	return gf_error_set(r->err, -EINVAL, "%s:%zu: want %s, got \"%s\"",
			    r->path, r->line, want, got);
}

static void advance(struct reader *r, size_t count)
{
	for (; count > 0 && *r->at; count--, r->at++)
		r->line += *r->at == '\n';
}

static void skip_space(struct reader *r)
{
	advance(r, strspn(r->at, " \t\r\n"));
}

static int skip_past(struct reader *r, const char *end)
{
	const char *found = strstr(r->at, end);

	if (!found) {
		advance(r, strlen(r->at));
		return refuse(r, end);
	}
	advance(r, (size_t)(found - r->at) + strlen(end));
	return 0;
}

/* Text, comments and declarations; then *r->at is '<' of an element or of the
 * end of one, or the end of the file. */
static int skip_to_element(struct reader *r)
{
	int rc = 0;

	while (rc == 0) {
		advance(r, strcspn(r->at, "<"));
		if (strncmp(r->at, "<!--", 4) == 0)
			rc = skip_past(r, "-->");
		else if (strncmp(r->at, "<?", 2) == 0)
			rc = skip_past(r, "?>");
		else if (strncmp(r->at, "<!", 2) == 0)
			rc = refuse(r, "an element");
		else
			break;
	}
	return rc;
}

static size_t name_length(const char *at)
{
	size_t n = 0;

	while (isalnum((unsigned char)at[n]) || strchr("_-.:", at[n]))
		if (!at[n++])
			return n - 1;
	return n;
}

static int read_name(struct reader *r, char **name)
{
	size_t n = name_length(r->at);

	if (n == 0)
		return refuse(r, "a name");
	*name = gf_xasprintf("%.*s", (int)n, r->at);
	advance(r, n);
	return 0;
}

static int read_attribute(struct reader *r, struct gf_xml *x)
{
	char *name = NULL, quote[2] = "";
	size_t n;
	int rc = read_name(r, &name);

	if (rc < 0)
		return rc;
	skip_space(r);
	if (x->nattributes == MOST_ATTRIBUTES)
		rc = refuse(r, "at most 100 attributes");
	else if (gf_xml_get(x, name))
		rc = refuse(r, "each attribute once");
	if (rc == 0 && *r->at != '=')
		rc = refuse(r, "=");
	if (rc == 0) {
		advance(r, 1);
		skip_space(r);
		quote[0] = *r->at;
		if (quote[0] != '"' && quote[0] != '\'')
			rc = refuse(r, "a value in quotes");
	}
	if (rc < 0) {
		free(name);
		return rc;
	}
	advance(r, 1);
	/* no line in a message is to be broken by what a file holds */
	for (n = 0; r->at[n] != quote[0] && (unsigned char)r->at[n] >= ' ';)
		n++;
	*gf_array_push(&x->attributes, &x->nattributes,
		       &x->attribute_capacity) = name;
	*gf_array_push(&x->attributes, &x->nattributes,
		       &x->attribute_capacity) =
		gf_xasprintf("%.*s", (int)n, r->at);
	advance(r, n);
	if (*r->at != quote[0])
		return refuse(r, "the end of a value");
	advance(r, 1);
	return 0;
}

static int read_element(struct reader *r, int depth, struct gf_xml **out);

static int read_children(struct reader *r, int depth, struct gf_xml *x)
{
	struct gf_xml *child;
	size_t n;
	int rc;

	for (;;) {
		rc = skip_to_element(r);
		if (rc < 0)
			return rc;
		if (r->at[0] == '<' && r->at[1] == '/')
			break;
		if (!*r->at)
			return refuse(r, "the end of an element");
		rc = read_element(r, depth + 1, &child);
		if (rc < 0)
			return rc;
		*gf_array_push(&x->children, &x->nchildren,
			       &x->child_capacity) = child;
	}
	advance(r, 2);
	n = strlen(x->name);
	if (strncmp(r->at, x->name, n) != 0 || name_length(r->at) != n)
		return refuse(r, x->name);
	advance(r, n);
	skip_space(r);
	if (*r->at != '>')
		return refuse(r, ">");
	advance(r, 1);
	return 0;
}

/* At '<'. */
static int read_element(struct reader *r, int depth, struct gf_xml **out)
{
	struct gf_xml *x = gf_xcalloc(1, sizeof(*x));
	int rc = 0;

	x->line = r->line;
	if (depth > DEPTH_MAX)
		rc = refuse(r, "at most 64 elements inside each other");
	if (rc == 0) {
		advance(r, 1);
		rc = read_name(r, &x->name);
	}
	while (rc == 0) {
		skip_space(r);
		if (*r->at == '>' || *r->at == '/')
			break;
		rc = read_attribute(r, x);
	}
	if (rc == 0 && *r->at == '>') {
		advance(r, 1);
		rc = read_children(r, depth, x);
	} else if (rc == 0) {
		if (r->at[1] != '>')
			rc = refuse(r, "/>");
		advance(r, 2);
	}
	if (rc < 0)
		gf_xml_free(x);
	else
		*out = x;
	return rc;
}

int gf_xml_parse(const char *text, const char *path, struct gf_xml **root,
		 struct gf_error *err)
{
	struct reader r = {text, path, 1, err};
	struct gf_xml *x = NULL;
	int rc = skip_to_element(&r);

	if (rc == 0 && *r.at != '<')
		rc = refuse(&r, "an element");
	if (rc == 0)
		rc = read_element(&r, 0, &x);
	if (rc == 0)
		rc = skip_to_element(&r);
	if (rc == 0 && *r.at)
		rc = refuse(&r, "one root element");
	if (rc < 0)
		gf_xml_free(x);
	else
		*root = x;
	return rc;
}

void gf_xml_free(struct gf_xml *x)
{
	size_t i;

	if (!x)
		return;
	for (i = 0; i < x->nattributes; i++)
		free(x->attributes[i]);
	for (i = 0; i < x->nchildren; i++)
		gf_xml_free(x->children[i]);
	free(x->attributes);
	free(x->children);
	free(x->name);
	free(x);
}

const char *gf_xml_get(const struct gf_xml *x, const char *name)
{
	size_t i;

	for (i = 0; i + 1 < x->nattributes; i += 2)
		if (strcmp(x->attributes[i], name) == 0)
			return x->attributes[i + 1];
	return NULL;
}
