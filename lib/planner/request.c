/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/make.h"

#include <stdlib.h>

#include "base/units.h"

int gf_request_threshold(const char *text, void *request, struct gf_error *err)
{
	struct gf_request *r = request;
	int rc = gf_units_size(text, &r->threshold_bytes, err);

	r->threshold_zero = rc == 0 && r->threshold_bytes == 0;
	return rc;
}

int gf_request_tolerance(const char *text, void *request, struct gf_error *err)
{
	struct gf_request *r = request;
	int rc = gf_units_real(text, 0, 1, &r->tolerance, err);

	r->tolerance_asked = rc == 0;
	return rc;
}

bool gf_request_has_threshold(const struct gf_request *r)
{
	return r->threshold_bytes || r->threshold_zero;
}

void gf_request_documents(struct gf_request *r, const struct gf_documents *d)
{
	const struct gf_plan *p = d->plan;
	int ranks = 0;

	if (d->profile) {
		r->model = d->profile->model;
		r->fabric.network = d->profile->network;
		r->fabric.processing = &d->profile->processing;
		r->profile_digest = d->profile_digest;
	}
	if (d->topology) {
		r->fabric.levels = d->topology->levels;
		r->fabric.nlevels = d->topology->nlevels;
		r->topology_digest = d->topology_digest;
		ranks = d->topology->ranks;
		/* made outside a job, by this or that machine for itself */
		r->one_host = !ranks && d->topology->nhosts == 1;
	}
	if (r->fabric.network && r->fabric.network->ranks)
		ranks = r->fabric.network->ranks;
	if (p) {
		r->rule = p->rule ? p : NULL;
		if (!r->model)
			r->model = p->model;
		if (!r->fabric.levels) {
			r->fabric.levels = p->levels;
			r->fabric.nlevels = p->nlevels;
			r->topology_digest = p->topology_digest;
		}
		if (!d->profile)
			r->fabric.processing = &p->processing;
		if (!r->fabric.network && !d->topology) {
			r->fabric.network = p->network;
			r->profile_digest = p->profile_digest;
		}
		if (!ranks)
			ranks = p->ranks + p->servers;
	}
	r->ranks_asked = r->fabric.ranks > 0;
	if (!r->fabric.ranks)
		r->fabric.ranks = ranks;
}

void gf_request_assume_ranks(struct gf_request *r, struct gf_text *open)
{
	int ranks = gf_levels_ranks(r->fabric.levels, r->fabric.nlevels);

	if (r->fabric.ranks || ranks < 2)
		return;
	r->fabric.ranks = ranks;
	gf_text_addf(open, "%s%d ranks as in the topology (--ranks)", open->length ? ", " : "",
		     ranks);
}
