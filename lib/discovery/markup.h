/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_MARKUP_H
#define GF_DISCOVERY_MARKUP_H

#include <stddef.h>

#include "base/error.h"

/*
 * A tree of names and values, as XML and YAML hold it. An element of XML is one here; the text at
 * its end is an attribute whose name is "". A mapping of YAML is an element: scalars below its keys
 * are attributes; mappings, and the entries of a list, are children of the key's name. An entry
 * that is a scalar is a child with one attribute, whose name is "". Control characters in values
 * become blanks.
 */
struct gf_markup {
	char *name;
	char **attributes; /* name, value, name, value ... */
	size_t nattributes;
	struct gf_markup **children;
	size_t nchildren;
	size_t line; /* from 1 */
	size_t attribute_capacity, child_capacity;
};

enum { GF_MARKUP_DEPTH = 64, GF_MARKUP_ATTRIBUTES = 100 };

/* The root, for gf_markup_free. -EINVAL "path:line: ...". A DOCTYPE with definitions of its own is
 * refused, and so is a second document; the file that a DOCTYPE names is not read. */
int gf_xml_parse(const char *text, const char *path, struct gf_markup **root, struct gf_error *err);
int gf_yaml_parse(const char *text, const char *path, struct gf_markup **root,
		  struct gf_error *err);

struct gf_markup *gf_markup_new(struct gf_markup *parent, const char *name, size_t line);
void gf_markup_set(struct gf_markup *e, const char *name, const char *value);
void gf_markup_free(struct gf_markup *e);

/* An attribute's value, borrowed; NULL if there is none. */
const char *gf_markup_get(const struct gf_markup *e, const char *name);

#endif
