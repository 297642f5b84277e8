/* SPDX-License-Identifier: BSD-3-Clause */
/* gf-topology documents themselves: to be drawn or renamed. */
#include <string.h>

#include "probe/format.h"

static int recognise(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '{' &&
	       strstr(text, "\"gf-topology\"") != NULL;
}

static int read_own(const struct gf_topology_file *in, struct gf_topology *t,
		    struct gf_text *remarks, struct gf_error *err)
{
	struct gf_json *root = NULL;
	int rc = gf_json_parse(in->text, in->size, in->path, &root, err);

	(void)remarks;
	if (rc == 0)
		rc = gf_topology_read(root, in->path, t, err);
	gf_json_free(root);
	return rc;
}

const struct gf_topology_format gf_format_own = {
	.name = "gf-topology",
	.description = "a document of this project",
	.recognise = recognise,
	.read = read_own,
};
