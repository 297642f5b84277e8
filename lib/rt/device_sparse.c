/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a device engine that are sets of the largest gradients. */
#include "rt/device_parts.h"

int gf_device_make_sparse(struct gf_device_engine *e, size_t i,
			  struct gf_error *err)
{
	const struct gf_selection *s = &e->k.plan->selection;
	struct gf_device_message *m = &e->messages[i];
	const struct gf_sparse_nccl_config config = {
		.gpu = e->k.gpu,
		.residual = e->k.residual + m->first_elem,
		.count_elems = m->count_elems,
		.method = s->method,
		.putback = s->putback,
		.ranks = e->k.comm->ranks,
		.rank = e->k.comm->rank,
		.most_k =
			gf_sparse_k(gf_sparse_most_density(s), m->count_elems),
	};
	int rc = gf_sparse_nccl_new(&config, &m->sparse, err);

	if (rc)
		gf_error_prefix(err, "message %zu", i);
	else
		m->program = gf_sparse_nccl_program(m->sparse);
	return rc;
}

int gf_device_run(struct gf_device_engine *e, struct gf_device_message *m,
		  struct gf_error *err)
{
	struct gf_device_lane *lane = &e->lanes[m->lane];
	float *data = gf_device_engine_data(&e->base, e->base.nbegun - 1) +
		      m->first_elem;

	if (e->k.csc)
		return gf_device_run_csc(e, m, err);
	if (!m->sparse)
		return gf_device_lane_run(lane, m->program, data, err);
	return gf_sparse_nccl_run(m->sparse, lane, data,
				  gf_sparse_k(e->density, m->count_elems), err);
}

void gf_device_engine_density(struct gf_engine *engine, double density)
{
	((struct gf_device_engine *)engine)->density = density;
}

void gf_device_engine_look(struct gf_engine *engine, struct gf_gpu_stream *s,
			   uint32_t *flag)
{
	struct gf_device_engine *e = (struct gf_device_engine *)engine;
	size_t i;

	for (i = 0; i < e->nmessages; i++)
		if (e->messages[i].sparse)
			gf_sparse_nccl_look(e->messages[i].sparse, s, flag);
}

int gf_device_engine_apply(struct gf_engine *engine, struct gf_gpu_stream *s,
			   const uint32_t *skip, struct gf_error *err)
{
	struct gf_device_engine *e = (struct gf_device_engine *)engine;
	size_t i;
	int rc = 0;

	for (i = 0; i < e->nmessages && !rc; i++)
		if (e->messages[i].sparse)
			rc = gf_sparse_nccl_apply(e->messages[i].sparse, s,
						  skip, err);
	return rc;
}
