/* SPDX-License-Identifier: BSD-3-Clause */
/* What the messages of a device engine weigh on the network. */
#include "base/heap.h"
#include "rt/device_parts.h"

/* Who alone knows what he sends tells nobody: as much as a ring, say. */
static uint64_t ring_bytes(const struct gf_device_engine *e, size_t count_elems)
{
	const uint64_t p = (uint64_t)e->k.comm->ranks;

	return 2 * (p - 1) * count_elems / p * sizeof(float);
}

uint64_t gf_device_program_weight(const struct gf_device_engine *e,
				  const struct gf_device_program *p)
{
	uint64_t bytes = gf_device_program_sent(p);
	size_t i;

	for (i = 0; i < p->nsteps; i++)
		if (p->steps[i].op == GF_DEVICE_ALL_REDUCE)
			bytes += ring_bytes(e, p->steps[i].range.count);
	return bytes;
}

uint64_t gf_device_engine_sent_bytes(const struct gf_device_engine *e)
{
	uint64_t bytes = 0;
	size_t i;

	if (e->k.csc)
		return e->sent_bytes;
	for (i = 0; i < e->nmessages; i++)
		bytes += gf_device_program_weight(e, e->messages[i].program);
	return bytes;
}

/* Of a selection's messages it need not be possible to send them whole. */
void gf_device_weigh(struct gf_device_engine *e, size_t i)
{
	struct gf_device_program whole = {0};

	if (gf_device_program_for(e, i, NULL, &whole, NULL))
		e->base.dense_bytes +=
			ring_bytes(e, e->messages[i].count_elems);
	else
		e->base.dense_bytes += gf_device_program_weight(e, &whole);
	gf_device_program_release(&whole);
}
