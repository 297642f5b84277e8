/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_XML_H
#define GF_PROBE_XML_H

#include <stddef.h>

#include "base/error.h"

/*
 * The part of XML that NCCL writes: elements and attributes. Comments,
 * declarations and text between elements are skipped. Entities are left as they
 * are. DOCTYPE, which could define new entities, is refused.
 */
struct gf_xml {
	char *name;
	char **attributes; /* name, value, name, value ... */
	size_t nattributes;
	struct gf_xml **children;
	size_t nchildren;
	size_t line; /* from 1 */
	size_t attribute_capacity, child_capacity;
};

/* The root element, for gf_xml_free. -EINVAL "path:line: ...". */
int gf_xml_parse(const char *text, const char *path, struct gf_xml **root,
		 struct gf_error *err);
void gf_xml_free(struct gf_xml *x);

/* An attribute's value, borrowed; NULL if there is none. */
const char *gf_xml_get(const struct gf_xml *x, const char *name);

#endif
