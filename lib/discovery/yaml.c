/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/markup.h"

#include <string.h>
#include <yaml.h>

/* An alias stands for its anchor's whole tree: a short text can mean a huge one, or one without an
 * end. So copies count, by elements and keys and by the bytes of these. */
enum { ENTRIES_MAX = 1 << 19, BYTES_MAX = 1 << 26, ANCHORS_MAX = 1000 };

struct reader {
	yaml_document_t document;
	const char *path;
	size_t entries, bytes;
	struct gf_error *err;
};

static int refuse(const struct reader *r, const yaml_node_t *at, const char *want)
{
	return gf_error_set(r->err, -EINVAL, "%s:%zu: want %s", r->path, at->start_mark.line + 1,
			    want);
}

/* Is there room for one more entry? */
static int count(struct reader *r, const yaml_node_t *n, const char *name, int depth)
{
	r->bytes += strlen(name);
	if (n->type == YAML_SCALAR_NODE)
		r->bytes += n->data.scalar.length;
	if (depth > GF_MARKUP_DEPTH || ++r->entries > ENTRIES_MAX || r->bytes > BYTES_MAX)
		return refuse(r, n,
			      "at most 64 levels, 2^19 entries and 2^26 bytes, each alias (*) with "
			      "all that it stands for, got more");
	return 0;
}

static int has_key(const struct gf_markup *e, const char *key)
{
	for (size_t i = 0; i < e->nchildren; i++)
		if (strcmp(e->children[i]->name, key) == 0)
			return 1;
	return gf_markup_get(e, key) != NULL;
}

static const char *scalar(const yaml_node_t *n)
{
	return (const char *)n->data.scalar.value;
}

static int add(struct reader *r, const yaml_node_t *n, const char *name, struct gf_markup *to,
	       int depth);

static int add_pairs(struct reader *r, const yaml_node_t *n, struct gf_markup *to, int depth)
{
	const yaml_node_pair_t *p;
	int rc = 0;

	for (p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top && rc == 0; p++) {
		yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
		yaml_node_t *value = yaml_document_get_node(&r->document, p->value);

		if (key->type != YAML_SCALAR_NODE)
			return refuse(r, key, "keys that are words");
		if (p - n->data.mapping.pairs.start >= GF_MARKUP_ATTRIBUTES)
			return refuse(r, key, "at most 100 keys, got more");
		if (has_key(to, scalar(key)))
			return gf_error_set(r->err, -EINVAL,
					    "%s:%zu: want %.40s once, got it again", r->path,
					    key->start_mark.line + 1, scalar(key));
		if (value->type != YAML_SCALAR_NODE)
			rc = add(r, value, scalar(key), to, depth);
		else if (!(rc = count(r, value, scalar(key), depth)))
			gf_markup_set(to, scalar(key), scalar(value));
	}
	return rc;
}

static int add(struct reader *r, const yaml_node_t *n, const char *name, struct gf_markup *to,
	       int depth)
{
	const yaml_node_item_t *i;
	int rc = count(r, n, name, depth);

	if (rc)
		return rc;
	if (n->type != YAML_SEQUENCE_NODE)
		to = gf_markup_new(to, name, n->start_mark.line + 1);
	if (n->type == YAML_SCALAR_NODE)
		gf_markup_set(to, "", scalar(n));
	if (n->type == YAML_MAPPING_NODE)
		return add_pairs(r, n, to, depth + 1);
	for (i = n->data.sequence.items.start;
	     n->type == YAML_SEQUENCE_NODE && rc == 0 && i < n->data.sequence.items.top; i++)
		rc = add(r, yaml_document_get_node(&r->document, *i), name, to, depth + 1);
	return rc;
}

/* libyaml takes the square of the depth of brackets in time, and of the number of anchors and of
 * tags; and 200 bytes for an entry, which has a line or a sign. */
static int check_cost(const char *text, const char *path, struct gf_error *err)
{
	size_t depth = 0, anchors = 0, entries = 0, line = 1;

	for (; *text; text++) {
		line += *text == '\n';
		entries += strchr("\n,[{:?-", *text) != NULL;
		depth += *text == '[' || *text == '{';
		depth -= depth > 0 && (*text == ']' || *text == '}');
		anchors += *text == '&' || *text == '%';
		if (depth > GF_MARKUP_DEPTH || anchors > ANCHORS_MAX || entries > ENTRIES_MAX)
			return gf_error_set(
				err, -EINVAL,
				"%s:%zu: want at most 64 brackets inside each other, 1000 anchors "
				"(&) and tags (%%), and 2^19 lines and signs in all, got more",
				path, line);
	}
	return 0;
}

int gf_yaml_parse(const char *text, const char *path, struct gf_markup **root, struct gf_error *err)
{
	struct reader r = {.path = path, .err = err};
	struct gf_markup *top;
	yaml_parser_t parser;
	yaml_node_t *n;
	int rc = check_cost(text, path, err);

	if (rc < 0)
		return rc;
	top = gf_markup_new(NULL, "", 1);
	if (!yaml_parser_initialize(&parser)) {
		gf_markup_free(top);
		return gf_error_set(err, -ENOMEM, "%s: libyaml: no memory", path);
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
	if (!yaml_parser_load(&parser, &r.document)) {
		rc = gf_error_set(err, -EINVAL, "%s:%zu: want YAML: %s", path,
				  parser.problem_mark.line + 1,
				  parser.problem ? parser.problem : "broken");
	} else {
		n = yaml_document_get_root_node(&r.document);
		if (!n)
			rc = gf_error_set(err, -EINVAL, "%s: want YAML, got nothing", path);
		else if (n->type == YAML_MAPPING_NODE)
			rc = add_pairs(&r, n, top, 1);
		else
			rc = add(&r, n, "", top, 1);
		yaml_document_delete(&r.document);
	}
	yaml_parser_delete(&parser);
	if (rc < 0)
		gf_markup_free(top);
	else
		*root = top;
	return rc;
}
