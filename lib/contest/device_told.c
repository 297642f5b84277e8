/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines whose NCCL is told how its all-reduce goes (doc/dialect.h). NCCL
 * refuses what it cannot do only in the first call (ncclGetAlgoInfo of its
 * src/enqueue.cc), so a message of one element is sent first.
 */
#include "contest/device_parts.h"

#include "base/array.h"

static int send_one(struct gf_contest_gpu *d, struct gf_engine *engine,
		    struct gf_error *err)
{
	const struct gf_burst_message one = {
		.way = {.algorithm = gf_algorithm_find("library")},
		.element = gf_element_number(GF_F32, GF_OP_SUM),
		.count_elems = 1,
	};
	struct gf_burst *burst = NULL;
	int rc = gf_burst_new(
		&(struct gf_burst_config){
			.comm = d->comm,
			.messages = &one,
			.nmessages = 1,
			.lanes = 1,
			.engine = engine,
		},
		&burst, err);

	rc = rc ? rc : gf_burst_send(burst, d->work, err);
	rc = rc ? rc : gf_engine_settle(engine, err);
	rc = gf_comm_agree(d->comm, rc, err);
	gf_burst_free(burst);
	return rc;
}

int gf_contest_gpu_told(struct gf_contest_gpu *d,
			const struct gf_tuning *tuning,
			struct gf_engine **engine, struct gf_error *err)
{
	struct gf_nccl_tuning told = {
		.algorithm = tuning->algorithm ? tuning->algorithm->name : NULL,
		.protocol = tuning->protocol ? tuning->protocol->name : NULL,
		.channels = tuning->channels,
	};
	struct gf_engine *made = NULL;
	size_t i;
	int rc;

	*engine = d->engine;
	if (!tuning->dialect)
		return 0;
	for (i = 0; i < d->ntold; i++)
		if (gf_tuning_same(&d->told[i].tuning, tuning)) {
			*engine = d->told[i].engine;
			return 0;
		}
	rc = gf_contest_gpu_engine(d, &told, &made, err);
	rc = rc ? rc : send_one(d, made, err);
	if (rc) {
		gf_engine_free(made);
		return rc;
	}
	*gf_array_push(&d->told, &d->ntold, &d->told_capacity) =
		(struct gf_contest_told_engine){*tuning, made};
	*engine = made;
	return 0;
}
