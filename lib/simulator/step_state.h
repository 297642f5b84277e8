/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_STEP_STATE_H
#define GF_SIMULATOR_STEP_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "documents/plan.h"
#include "documents/profile.h"

/*
 * The step model one start at a time: a state is the moment at which the latest message started,
 * with the messages in flight then. gf_sim_step takes a whole plan through it; the planner's search
 * keeps many states side by side.
 *
 * Backward's progress is kept as `lag_s`, the time lost so far to overlap and to issuing messages:
 * without further loss, w of its work is done at forward_s + w + lag_s. This is exact where nothing
 * slows backward.
 */
struct gf_sim_flight {
	size_t message;
	bool draining;
	bool beside;          /* backward runs, and slows it */
	double startup_end_s; /* until then it uses no bandwidth */
	double startup_drag;  /* factor of what is left of it, if beside */
	double left_s;        /* to drain, in seconds alone */
	struct gf_contention_place contention;
	const struct gf_beside_backward *mutual; /* or NULL */
	int gamma_n;                             /* what gamma was looked up for; 0: not yet */
	double gamma;
};

/* The message to start, with its costs. */
struct gf_sim_start {
	size_t message;
	enum gf_mode mode;
	double work_s;             /* backward work that makes it ready */
	double startup_s, drain_s; /* alone */
	size_t size_bytes;
	const struct gf_contention *contention;  /* NULL: gamma_n = n */
	const struct gf_beside_backward *mutual; /* NULL: the state's slowdown */
	double issue_s;                          /* by which backward is held up once it is ready */
};

/* Moments, and the lag at each of them; between them it grows evenly. */
struct gf_sim_lags {
	struct gf_sim_lag {
		double at_s, lag_s;
	} * at;
	size_t count, capacity;
};

struct gf_sim_state {
	double now_s;
	double backward_start_s;
	double backward_s; /* its work alone; 0: it slows no message */
	double slowdown;   /* of backward by messages that say no more */
	double lag_s;
	double unissued_s; /* what later messages will take; 0: not known */
	int lanes;
	int nflights;
	struct gf_sim_flight *flights; /* caller's, room for `lanes` */
	double *start_s, *end_s;       /* caller's, per message; NULL: not wanted */
	struct gf_sim_lags *lags;      /* caller's, to be added to; or NULL */
};

/* The seconds that the flight's startup would still take without backward. */
double gf_sim_startup_left_s(const struct gf_sim_flight *f, double now_s);
/* How long a startup takes while backward runs. */
double gf_sim_startup_beside_s(const struct gf_beside_backward *mutual, double startup_s);
/* By how much backward slows a message's transfers. */
double gf_sim_drag(const struct gf_beside_backward *mutual);
/* How long what takes alone_s alone takes if it is `drag` times slower for left_s. */
double gf_sim_hindered_s(double drag, double alone_s, double left_s);
/* How long a message takes by itself, with these times alone, if compute runs beside it for
 * left_s. */
double gf_sim_beside_s(const struct gf_beside_backward *mutual, double startup_s, double drain_s,
		       double left_s);
/* By how much backward slows with n messages in flight, of which this is one: the greatest that any
 * of them says. */
double gf_sim_slowdown(const struct gf_beside_backward *mutual, double otherwise, int n);
/* Starts the message as early as its mode allows and moves the state there. */
void gf_sim_start(struct gf_sim_state *s, const struct gf_sim_start *m);
/* Starts the message if its mode allows it by to_s, before backward has done to_work_s. Else the
 * state moves to to_s alone, and the answer is false. */
bool gf_sim_start_by(struct gf_sim_state *s, const struct gf_sim_start *m, double to_s,
		     double to_work_s);
/* A state that goes from one step to the next (simulator/pipeline.h) treats all of a step's compute
 * as backward. Compute begins, and will have ended once end_work_s is done; compute has ended.
 * Between steps it slows no message. */
void gf_sim_begin_compute(struct gf_sim_state *s, double end_work_s);
void gf_sim_end_compute(struct gf_sim_state *s);
/* Time passes and nothing starts: until backward has done work_s, until that moment, until a phase
 * of a flight ends (false: nothing is in flight). */
void gf_sim_reach(struct gf_sim_state *s, double work_s);
void gf_sim_advance(struct gf_sim_state *s, double to_s);
bool gf_sim_pass_phase(struct gf_sim_state *s);
/* Lets everything in flight end; now_s is the last end. */
void gf_sim_finish(struct gf_sim_state *s);

#endif
