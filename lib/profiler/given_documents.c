/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/whole_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "json/json.h"

static int check(const struct gf_documents *d, bool network, int ranks, struct gf_error *err)
{
	bool timed = d->profile && (d->profile->model || d->profile->passes);

	if (!d->model && !network)
		return gf_error_set(
			err, -EINVAL,
			"nothing to measure: want --model, or more than one rank under mpirun");
	if (network && d->topology && d->topology->ranks > 0 && d->topology->ranks != ranks)
		return gf_error_set(err, -EINVAL, "%s: the topology has %d ranks, this job has %d",
				    d->topology_file, d->topology->ranks, ranks);
	if (d->profile && ((timed && d->model) || (d->profile->network && network)))
		return gf_error_set(err, -EINVAL, "%s: there is a %s half in it already",
				    d->profile_file, timed && d->model ? "model" : "network");
	return 0;
}

static int read_model(const char *text, size_t length, struct gf_model *model, struct gf_error *err)
{
	struct gf_json *root = NULL;
	int rc = gf_json_parse(text, length, "the model", &root, err);

	if (rc == 0)
		rc = gf_model_read(root, "the model", model, err);
	gf_json_free(root);
	return rc;
}

int gf_measure_given_model(struct gf_comm *comm, const struct gf_model *model,
			   struct gf_model *copy, bool *given, struct gf_error *err)
{
	char *text = NULL;
	size_t length = 0;
	int rc;

	if (comm->rank == 0) {
		text = model ? gf_model_write(model) : gf_xstrdup("");
		length = strlen(text);
	}
	rc = gf_comm_bcast_text(comm, 0, &text, &length, err);
	if (rc == 0) {
		*given = length > 0;
		if (*given)
			rc = read_model(text, length, copy, err);
		rc = gf_comm_agree(comm, rc, err);
	}
	free(text);
	return rc;
}

int gf_measure_given(struct gf_comm *comm, const struct gf_documents *d, bool network,
		     struct gf_model *model, bool *given, struct gf_error *err)
{
	int rc = comm->rank ? 0 : check(d, network, comm->ranks, err);

	rc = gf_comm_agree(comm, rc, err);
	return rc ? rc : gf_measure_given_model(comm, d->model, model, given, err);
}
