/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_RUN_MEMORY_H
#define GF_TRAINER_RUN_MEMORY_H

#include <stddef.h>

#include "base/text.h"
#include "trainer/trainer.h"

/* The memory of this process that is in use; 0: unknown. */
size_t gf_train_resident(void);
/* What this rank's run has by now. */
struct gf_train_memory gf_train_memory(const struct gf_trainer *t);
/* One line, for people; a second one where the plan foretold what a step holds (0: it did not). */
void gf_train_memory_line(const struct gf_train_memory *m, double predicted_bytes,
			  struct gf_text *out);

#endif
