/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/format.h"

#include <string.h>

#include "base/gunzip.h"
#include "base/heap.h"
#include "base/registry.h"
#include "discovery/discovery.h"
#include "documents/foreign.h"
#include "imports/import.h"

/* gf-topology documents themselves: to be drawn or renamed. */
static int is_own(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '{' && strstr(text, "\"gf-topology\"") != NULL;
}

static int read_own(const struct gf_topology_file *in, struct gf_topology *t,
		    struct gf_text *remarks, struct gf_error *err)
{
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	int rc = gf_json_parse(in->text, in->size, in->path, &root, err);

	(void)remarks;
	return rc ?: gf_topology_read(root, in->path, t, err);
}

/* MANUAL
 * a
 * .Xr gf-topology 5
 * document, to be drawn or renamed. */
const struct gf_topology_format gf_format_own = {
	.name = "gf-topology",
	.description = "a document of this project",
	.place = 1,
	.recognise = is_own,
	.read = read_own,
};

/* The caller frees. */
static char *names_of_all(void)
{
	struct gf_text t = {0};

	for (size_t i = 0; gf_topology_formats[i]; i++)
		gf_text_addf(&t, "%s%s", i ? ", " : "", gf_topology_formats[i]->name);
	return gf_text_take(&t);
}

/* "nccl:dump.xml" -> the format and "dump.xml"; NULL and all of it where what stands before the
 * colon is no format. */
static const struct gf_topology_format *named(const char *spec, const char **path)
{
	const char *colon = strchr(spec, ':');
	const struct gf_topology_format *format = NULL;
	GF_FREED char *name = NULL;

	*path = spec;
	if (!colon)
		return NULL;
	name = gf_xasprintf("%.*s", (int)(colon - spec), spec);
	format = gf_named_find(gf_topology_formats, 0, name);
	if (format)
		*path = colon + 1;
	return format;
}

static const struct gf_topology_format *recognise(const char *text)
{
	for (size_t i = 0; gf_topology_formats[i]; i++)
		if (gf_topology_formats[i]->recognise(text))
			return gf_topology_formats[i];
	return NULL;
}

/* Of a page or a transcript: fences and commands behind a prompt. They become blanks, so that lines
 * keep their numbers. */
static void blank_frame(char *text, struct gf_imported *imported)
{
	size_t n, line = 1;
	char *p = text;

	for (;; p += n + 1, line++) {
		const char *word = p + strspn(p, " \t");

		n = strcspn(p, "\n");
		if (strncmp(word, "```", 3) == 0 || strncmp(word, "~~~", 3) == 0 ||
		    strncmp(word, "$ ", 2) == 0) {
			memset(p, ' ', n);
			gf_imported_leave(imported, "lines that are none of its", line);
		}
		if (!p[n])
			return;
	}
}

static int finish(const char *path, struct gf_topology *t, struct gf_error *err)
{
	int rc;

	if (!t->name)
		t->name = gf_discover_name_of_file(path);
	free(t->producer);
	t->producer = gf_xstrdup("gf-topo " GF_VERSION);
	rc = gf_topology_check(t, err);
	if (rc < 0)
		gf_error_prefix(err, "%s", path);
	return rc;
}

static void find(struct gf_imported *imported, size_t n, const char *what)
{
	gf_imported_find(imported, "%zu %s%s", n, what, n == 1 ? "" : "s");
}

static void say_found(const struct gf_topology *t, struct gf_imported *imported)
{
	size_t devices = 0, nics = 0, i;
	GF_RELEASED(gf_text_release) struct gf_text levels = {0};

	for (i = 0; i < t->nhosts; i++) {
		devices += t->hosts[i].ndevices;
		nics += t->hosts[i].nnics;
	}
	for (i = 0; i < t->nlevels; i++)
		gf_text_addf(&levels, "%s%zu", i ? " x " : "", t->levels[i].size);
	if (t->nhosts)
		find(imported, t->nhosts, "host");
	if (devices)
		find(imported, devices, "device");
	if (nics)
		find(imported, nics, "network interface");
	if (t->nlevels)
		gf_imported_find(imported, "levels of %s", levels.data);
}

int gf_topology_import(const char *spec, int ranks_per_host, struct gf_topology *out,
		       struct gf_imported *imported, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_topology_file in = {
		.ranks_per_host = ranks_per_host ? ranks_per_host : 1,
	};
	const struct gf_topology_format *format = named(spec, &in.path);
	struct gf_topology t = {0};
	GF_FREED char *text = NULL, *names = NULL;
	const char *measured;
	int rc = gf_gunzip_read(in.path, &text, &in.size, err);

	if (rc < 0)
		return rc;
	if (!format || strlen(text) != in.size)
		rc = gf_foreign_refuse(in.path, text, in.size, err);
	blank_frame(text, imported);
	in.text = text;
	in.imported = imported;
	if (!format)
		format = recognise(text);
	measured = rc || format ? NULL : gf_import_reads(text);
	if (measured)
		rc = gf_error_set(err, -EINVAL,
				  "%s: this is a measurement, %s: give it to gf-profile --import",
				  in.path, measured);
	if (rc == 0 && (!format || strlen(text) != in.size))
		rc = gf_foreign_refuse_rest(in.path, text, in.size, err);
	if (rc == 0 && !format) {
		names = names_of_all();
		rc = gf_error_set(err, -EINVAL, "%s: it looks like none of %s", in.path, names);
	}
	if (rc == 0 && ranks_per_host && !format->bare_hosts)
		rc = gf_error_set(err, -EINVAL,
				  "%s: --ranks-per-host: want a file that names hosts alone "
				  "(slurm), got %s, which says what is in them",
				  in.path, format->name);
	if (rc == 0) {
		imported->kind = format->name;
		rc = format->read(&in, &t, remarks, err);
	}
	rc = rc ?: finish(in.path, &t, err);
	if (rc == 0) {
		say_found(&t, imported);
		if (format != &gf_format_own)
			gf_imported_note(imported, &t.origin);
	}
	if (rc < 0)
		gf_topology_release(&t);
	else
		*out = t;
	return rc;
}
