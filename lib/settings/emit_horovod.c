/* SPDX-License-Identifier: BSD-3-Clause */
/* Horovod's DistributedOptimizer: Python to import. */
#include "settings/emit_buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "json/json.h"
#include "planner/policies/policies.h"

static bool horovod_takes(const char *codec)
{
	return gf_emit_compression_of(codec)->horovod;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The groups are found by the names of their tensors. */
static int check_names(const struct gf_plan *p, struct gf_error *err)
{
	size_t n = p->model->ntensors, i;
	const char **names = gf_xcalloc(n, sizeof(*names));
	int rc = 0;

	for (i = 0; i < n; i++)
		names[i] = p->model->tensors[i].name;
	qsort(names, n, sizeof(*names), by_name);
	for (i = 1; i < n && !rc; i++)
		if (!strcmp(names[i - 1], names[i]))
			rc = gf_error_set(err, -ENOTSUP,
					  "--emit horovod: want tensors with names of their own, "
					  "got \"%.40s\" twice",
					  names[i]);
	free(names);
	return rc;
}

static void add_groups(const struct gf_plan *p, struct gf_text *out)
{
	size_t i, k;

	gf_text_addf(out, "import os\n\n");
	gf_text_addf(out, "os.environ[\"HOROVOD_DISABLE_GROUP_FUSION\"] = \"1\"\n\n"
			  "group_names = [\n");
	for (i = 0; i < p->nmessages; i++) {
		gf_text_addf(out, "    [");
		for (k = p->messages[i].first; k <= p->messages[i].last; k++) {
			gf_text_addf(out, "%s", k == p->messages[i].first ? "" : ", ");
			gf_json_quote(out, p->model->tensors[k].name);
		}
		gf_text_addf(out, "],\n");
	}
	gf_text_addf(out, "]\n");
}

static int emit_horovod(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
			struct gf_error *err)
{
	int rc = gf_emit_check(p, &gf_emitter_horovod, false, err);
	const char *name;

	(void)t;
	if (rc < 0)
		return rc;
	gf_emit_head(p, "groups for hvd.DistributedOptimizer", out);
	if (p->rule) {
		gf_text_addf(out,
			     "import os\n\n"
			     "os.environ[\"HOROVOD_FUSION_THRESHOLD\"] = \"%zu\"\n",
			     p->rule->threshold_bytes);
		return 0;
	}
	rc = check_names(p, err);
	if (rc < 0)
		return rc;
	gf_emit_caveats(p, out);
	add_groups(p, out);
	name = gf_emit_compression_of(p->messages[0].codec)->horovod;
	if (name[0])
		gf_text_addf(out,
			     "\n\ndef compression():\n"
			     "    \"\"\"hvd.DistributedOptimizer(..., compression=compression()): "
			     "the plan's codec\"\"\"\n"
			     "    import horovod.torch as hvd\n"
			     "    return hvd.Compression.%s\n",
			     name);
	gf_text_addf(
		out,
		"\n\ndef groups(model):\n"
		"    \"\"\"hvd.DistributedOptimizer(optimizer, groups=groups(model), ...)\"\"\"\n"
		"    parameters = dict(model.named_parameters())\n"
		"    return [[parameters[name] for name in group] for group in group_names]\n");
	return 0;
}

const struct gf_emitter gf_emitter_horovod = {
	.name = "horovod",
	.description = "Horovod's DistributedOptimizer, Python",
	.version = "Horovod 0.28.1",
	.takes = GF_EMIT_BUCKETS | GF_EMIT_CODECS,
	.program = "Horovod",
	.as_it_is = &gf_policy_horovod,
	.takes_codec = horovod_takes,
	.emit = emit_horovod,
};
