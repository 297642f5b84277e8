/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/markup.h"

#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/* No line of a message is to be broken by what a file holds. */
static char *plain_copy(const char *text)
{
	char *copy = gf_xstrdup(text), *c;

	for (c = copy; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	return copy;
}

struct gf_markup *gf_markup_new(struct gf_markup *parent, const char *name, size_t line)
{
	struct gf_markup *e = gf_xcalloc(1, sizeof(*e));

	e->name = plain_copy(name);
	e->line = line;
	if (parent)
		*gf_array_push(&parent->children, &parent->nchildren, &parent->child_capacity) = e;
	return e;
}

void gf_markup_set(struct gf_markup *e, const char *name, const char *value)
{
	*gf_array_push(&e->attributes, &e->nattributes, &e->attribute_capacity) = plain_copy(name);
	*gf_array_push(&e->attributes, &e->nattributes, &e->attribute_capacity) = plain_copy(value);
}

void gf_markup_free(struct gf_markup *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->nattributes; i++)
		free(e->attributes[i]);
	for (size_t i = 0; i < e->nchildren; i++)
		gf_markup_free(e->children[i]);
	free(e->attributes);
	free(e->children);
	free(e->name);
	free(e);
}

const char *gf_markup_get(const struct gf_markup *e, const char *name)
{
	for (size_t i = 0; i + 1 < e->nattributes; i += 2)
		if (strcmp(e->attributes[i], name) == 0)
			return e->attributes[i + 1];
	return NULL;
}
