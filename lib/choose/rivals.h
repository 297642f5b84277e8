/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CHOOSE_RIVALS_H
#define GF_CHOOSE_RIVALS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The fastest of several rivals, by times taken in turns on a machine that also
 * does other things. A run may be slower than it need be, but hardly faster. So
 * a rival's time is its lower quartile. A rival is out when its fastest run so
 * far is slower than the best one's median by more than the number of runs
 * leaves to chance. Pure: the same times give the same answer on every rank.
 */
enum { GF_RIVAL_TIMES = 32 };

struct gf_rival {
	double times[GF_RIVAL_TIMES]; /* ascending */
	size_t n;
	bool out;
};

/* At most GF_RIVAL_TIMES. */
void gf_rival_add(struct gf_rival *r, double time_s);
/* Its lower quartile; n > 0. */
double gf_rival_time_s(const struct gf_rival *r);
/* Takes out the rivals that have lost; returns how many are left, at least one
 * if one was in. All rivals that are in have the same number of times. */
size_t gf_rivals_weed(struct gf_rival *rivals, size_t n);
/* Takes out the rivals with more than `times` times the best one's time;
 * returns how many are left. */
size_t gf_rivals_near(struct gf_rival *rivals, size_t n, double times);
/* The best of those that are in: one further on must be faster by 3 % to be
 * preferred. n if none is in. */
size_t gf_rivals_best(const struct gf_rival *rivals, size_t n);

#endif
