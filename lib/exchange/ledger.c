/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange/exchange_parts.h"

#include <errno.h>
#include <inttypes.h>

void gf_ledger_init(struct gf_ledger *l, size_t depth)
{
	*l = (struct gf_ledger){.depth = depth};
}

size_t gf_ledger_begin(struct gf_ledger *l, size_t number)
{
	l->number = number;
	return l->begun++;
}

bool gf_ledger_list(struct gf_ledger *l)
{
	if (l->listed == l->begun)
		return false;
	l->listed = l->begun;
	return true;
}

bool gf_ledger_next_arrival(const struct gf_ledger *l, size_t count, size_t *index)
{
	*index = l->arrived;
	return l->arrived < count;
}

bool gf_ledger_next_lesson(const struct gf_ledger *l, size_t *index)
{
	*index = l->learnt;
	return l->learnt < l->taken;
}

int gf_ledger_restore(struct gf_ledger *l, uint64_t in_flight, struct gf_error *err)
{
	if (in_flight >= l->depth)
		return gf_error_set(
			err, -EINVAL,
			"the checkpoint: want at most %zu gradients in flight, got %" PRIu64,
			l->depth - 1, in_flight);
	gf_ledger_init(l, l->depth);
	l->begun = l->listed = l->arrived = l->restored = in_flight;
	l->shift = l->depth - in_flight;
	return 0;
}
