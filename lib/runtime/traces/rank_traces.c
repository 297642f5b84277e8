/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/traces/rank_traces.h"

#include <stdlib.h>

#include "base/heap.h"

double gf_trace_shift_s(const struct gf_clock_offset *offset)
{
	return offset->origin_s + offset->offset_s;
}

static char *metadata(const struct gf_clock_offset *offsets, int ranks, const char *producer)
{
	struct gf_text t = {0};
	int r;

	gf_text_addf(&t, "{\"producer\": \"%s " GF_VERSION "\", \"clock_offset_s\": [", producer);
	for (r = 0; r < ranks; r++)
		gf_text_addf(&t, "%s%.9f", r ? ", " : "", offsets[r].offset_s);
	gf_text_addf(&t, "], \"clock_uncertainty_s\": [");
	for (r = 0; r < ranks; r++)
		gf_text_addf(&t, "%s%.9f", r ? ", " : "", offsets[r].uncertainty_s);
	gf_text_addf(&t, "]}");
	return gf_text_take(&t);
}

static char *assemble(const char *all, const size_t *lengths, int ranks, const char *meta)
{
	struct gf_trace whole = {0};
	char *text;
	int r;

	for (r = 0; r < ranks; r++) {
		gf_trace_append(&whole, all, lengths[r]);
		all += lengths[r];
	}
	text = gf_trace_finish(&whole, meta);
	gf_trace_release(&whole);
	return text;
}

int gf_trace_gather(const struct gf_trace *own, struct gf_comm *comm,
		    const struct gf_clock_offset *offset, const char *producer, char **text,
		    struct gf_error *err)
{
	size_t ranks = (size_t)comm->ranks;
	struct gf_clock_offset *offsets = gf_xcalloc(ranks, sizeof(*offsets));
	size_t *lengths = gf_xcalloc(ranks, sizeof(*lengths));
	char *all = NULL, *meta = NULL;
	int rc = gf_comm_allgather(comm, offset, sizeof(*offset), offsets, err);

	if (!rc)
		rc = gf_comm_gather_text(comm, 0, own->events.data, own->events.length, &all,
					 lengths, err);
	if (!rc && comm->rank == 0)
		meta = metadata(offsets, comm->ranks, producer);
	if (!rc)
		*text = meta ? assemble(all, lengths, comm->ranks, meta) : NULL;
	free(meta);
	free(all);
	free(lengths);
	free(offsets);
	return rc;
}
