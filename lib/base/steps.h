/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_STEPS_H
#define GF_BASE_STEPS_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/*
 * A number of steps that follows from the length of an epoch or of a run, until somebody knows
 * these: "4 epochs", "5%".
 */
enum gf_steps_of { GF_STEPS_KNOWN, GF_STEPS_OF_EPOCH, GF_STEPS_OF_RUN };

struct gf_steps_part {
	double share; /* of that length; > 0 unless KNOWN */
	enum gf_steps_of of;
};

/* "100", "4epochs", "0.5 epochs", "5%". *steps is 0 where it follows from a part. 0 or -EINVAL. */
int gf_steps_parse(const char *text, size_t *steps, struct gf_steps_part *part,
		   struct gf_error *err);
/* The same text; nothing where it is KNOWN. */
void gf_steps_text(const struct gf_steps_part *part, struct gf_text *out);
/* Makes *steps of the part, which is KNOWN then, if that length is (> 0). */
void gf_steps_settle(size_t *steps, struct gf_steps_part *part, double epoch_steps,
		     double run_steps);

#endif
