/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"

const struct gf_topology_format *const gf_topology_formats[] = {
	&gf_format_own,   &gf_format_nccl,  &gf_format_hwloc,
	&gf_format_slurm, &gf_format_astra, NULL,
};

const struct gf_topology_format *gf_topology_format_find(const char *name)
{
	size_t i;

	for (i = 0; gf_topology_formats[i]; i++)
		if (strcmp(gf_topology_formats[i]->name, name) == 0)
			return gf_topology_formats[i];
	return NULL;
}

/* The formats that can be read; the caller frees. */
static char *names_of_readers(void)
{
	struct gf_text t = {0};
	size_t i;

	for (i = 0; gf_topology_formats[i]; i++)
		if (gf_topology_formats[i]->read)
			gf_text_addf(&t, "%s%s", t.length ? ", " : "",
				     gf_topology_formats[i]->name);
	return gf_text_take(&t);
}

/* "nccl:dump.xml" -> the format and "dump.xml"; NULL and all of it where what
 * stands before the colon is no format. */
static const struct gf_topology_format *named(const char *spec,
					      const char **path)
{
	const char *colon = strchr(spec, ':');
	const struct gf_topology_format *format = NULL;
	char *name;

	*path = spec;
	if (!colon)
		return NULL;
	name = gf_xasprintf("%.*s", (int)(colon - spec), spec);
	format = gf_topology_format_find(name);
	free(name);
	if (format)
		*path = colon + 1;
	return format;
}

static const struct gf_topology_format *recognise(const char *text)
{
	size_t i;

	for (i = 0; gf_topology_formats[i]; i++)
		if (gf_topology_formats[i]->recognise &&
		    gf_topology_formats[i]->recognise(text))
			return gf_topology_formats[i];
	return NULL;
}

/* "dir/dump.xml" -> "dump" */
static char *name_of_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = gf_xstrdup(slash ? slash + 1 : path);
	char *dot = strrchr(name, '.');

	if (dot && dot != name)
		*dot = '\0';
	if (!*name || strcmp(name, "-") == 0) {
		free(name);
		name = gf_xstrdup("imported");
	}
	return name;
}

static int finish(const char *path, struct gf_topology *t, struct gf_error *err)
{
	int rc;

	if (!t->name)
		t->name = name_of_file(path);
	free(t->producer);
	t->producer = gf_xstrdup("gf-topo " GF_VERSION);
	rc = gf_topology_check(t, err);
	if (rc < 0)
		gf_error_prefix(err, "%s", path);
	return rc;
}

int gf_topology_import(const char *spec, int ranks_per_host,
		       struct gf_topology *out, struct gf_text *remarks,
		       struct gf_error *err)
{
	struct gf_topology_file in = {
		.ranks_per_host = ranks_per_host ? ranks_per_host : 1,
	};
	const struct gf_topology_format *format = named(spec, &in.path);
	struct gf_topology t = {0};
	char *text = NULL, *names;
	int rc = gf_file_read(in.path, &text, &in.size, err);

	if (rc < 0)
		return rc;
	in.text = text;
	if (strlen(text) != in.size)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want text, got a zero byte at offset "
				  "%zu",
				  in.path, strlen(text));
	if (rc == 0 && !format)
		format = recognise(text);
	if (rc == 0 && !format) {
		names = names_of_readers();
		rc = gf_error_set(err, -EINVAL, "%s: it looks like none of %s",
				  in.path, names);
		free(names);
	}
	if (rc == 0 && ranks_per_host && !format->bare_hosts)
		rc = gf_error_set(err, -EINVAL,
				  "%s: --ranks-per-host: want a file that "
				  "names hosts alone (slurm), got %s, which "
				  "says what is in them",
				  in.path, format->name);
	if (rc == 0)
		rc = format->read(&in, &t, remarks, err);
	if (rc == 0)
		rc = finish(in.path, &t, err);
	free(text);
	if (rc < 0)
		gf_topology_release(&t);
	else
		*out = t;
	return rc;
}
