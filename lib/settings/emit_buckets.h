/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SETTINGS_EMIT_BUCKETS_H
#define GF_SETTINGS_EMIT_BUCKETS_H

#include "settings/emit.h"

/* What targets that are told buckets share. */

#define GF_EMIT_MIB 1048576.0

/* What the programs call our codecs; NULL: they have none of the kind. */
struct gf_emit_compression {
	const char *codec, *ddp, *horovod;
};
const struct gf_emit_compression *gf_emit_compression_of(const char *codec);

/* Comments on the parts of a plan that a program with an all-reduce of its own leaves out. */
void gf_emit_caveats(const struct gf_plan *p, struct gf_text *out);

/* -ENOTSUP: the plan has that kind of thing, and the target has none. */
int gf_emit_lacks(const struct gf_emitter *e, const char *kind, const char *name,
		  struct gf_error *err);

/* -ENOTSUP: the target does not send all gradients (or, by_rank, those that PowerSGD leaves) as the
 * plan does. */
int gf_emit_check(const struct gf_plan *p, const struct gf_emitter *e, bool by_rank,
		  struct gf_error *err);

/* Is the plan at least as good as the target's default, as far as known? */
bool gf_emit_plan_pays(const struct gf_emit_times *t);
/* Is the best cap, in either way to take it? */
bool gf_emit_cap_pays(const struct gf_emit_times *t);

#endif
