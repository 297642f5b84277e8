/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/exchange/localsgd: the outer exchange of a period: every H steps, how far the parameters of
 * groups of ranks have come. */
#ifndef GF_LOCALSGD_OUTER_H
#define GF_LOCALSGD_OUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "checkpoints/state.h"
#include "documents/plan.h"
#include "exchange/exchange.h"
#include "transport/comm.h"

/*
 * The running half of periods (documents/periods/period.h has the equations). A
 *period owns the outer parameters w and the velocity v. Both lie on the host
 *and are the same on all ranks. A period also owns an exchange between all
 *ranks, which carries w - x, one fragment at a time. What happens in a step is
 *the caller's: it changes x, its own parameters, and after each step's update
 *calls
 *
 *	if (gf_outer_due(o, step)) {
 *		... x is the host's ...
 *		gf_outer_step(o, step, &changed, &err);
 *		... x has changed, if `changed` ...
 *	}
 *
 * Steps count from 1 over the whole run, also after a resume. All ranks make
 * the same calls.
 */
struct gf_outer;

struct gf_outer_env {
	struct gf_comm *comm;       /* all ranks; all borrowed */
	const struct gf_plan *plan; /* bound, with a period */
	float *params;              /* x: in generation order */
	double timeout_s;           /* of the exchange, without progress */
	int threads;                /* that compute on the host */
};

/* Collective: returns after all ranks have agreed. On failure *o is NULL. */
int gf_outer_open(struct gf_outer **o, const struct gf_outer_env *env, struct gf_error *err);
/* Accepts NULL. As gf_exchange_close, and on a broken communicator gf_exchange_abandon. */
void gf_outer_close(struct gf_outer *o);

/* w, which also is what all ranks begin with: x must be the same everywhere. */
float *gf_outer_params(struct gf_outer *o);
void gf_outer_begin(struct gf_outer *o);

bool gf_outer_due(const struct gf_outer *o, size_t step);
/* Begins and ends what the step does. 1: a difference is infinite or not a number, the same on all
 * ranks. */
int gf_outer_step(struct gf_outer *o, size_t step, bool *changed, struct gf_error *err);
/* At the end of a run: ends what is under way; then w and x become the mean of all ranks'
 * parameters, by one more exchange of each fragment. A state that is saved afterwards is not what a
 * longer run would have had here. */
int gf_outer_finish(struct gf_outer *o, size_t step, struct gf_error *err);

/* Adds what must survive a stop, but for w. */
void gf_outer_state(struct gf_outer *o, struct gf_state *s);
/* Before the state is looked at: waits for what is under way, which changes nothing of the
 * results. */
int gf_outer_settle(struct gf_outer *o, struct gf_error *err);

/* The exchange, through which all ranks work together beside steps. */
struct gf_exchange *gf_outer_exchange(struct gf_outer *o);

/* So far, without the mean at the end: outer exchanges of all fragments, as a number that may have
 * a part, and seconds that the caller waited in them; the mean time of the messages of one, of all
 * fragments; bytes sent by this rank, the mean at the end included. */
struct gf_outer_totals {
	double exchanges, exposed_s, exchange_s;
	uint64_t sent_bytes;
};
struct gf_outer_totals gf_outer_totals(struct gf_outer *o);

/* The equations of documents/periods/period.h, of n elements each. */

/* d = w - x */
void gf_outer_difference(float *d, const float *w, const float *x, size_t n);
/* v = m v + share d; w = w - r (share d + m v). v NULL: m is 0. */
void gf_outer_update(float *w, float *v, const float *d, float share, float r, float m, size_t n);

#endif
