/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose schedules are proved before they go. */
#include <stdlib.h>

#include "coll/prove.h"
#include "engine/engine_parts.h"

static const char *type_of(const struct gf_element *e)
{
	return e->codec    ? e->codec->name
	       : e->number ? gf_dtype_names[e->dtype]
			   : gf_dtype_names[GF_F32];
}

struct subject {
	const struct gf_engine *e;
	const struct gf_work *w;
};

static int build(void *ctx, int rank, struct gf_schedule *s,
		 struct gf_error *err)
{
	const struct subject *subject = ctx;

	return subject->e->ops->schedule(subject->e, subject->w, rank, s, err);
}

/* Ranks that would run other schedules than rank 0 has proved find out. */
static int prove(struct gf_engine *e, const struct gf_work *w,
		 struct gf_text *out, struct gf_error *err)
{
	struct subject subject = {e, w};
	struct gf_recipe r;
	char *words;
	int rc = gf_comm_agree(e->comm, e->ops->recipe(e, w, &r, err), err);

	if (rc)
		return rc;
	words = gf_prove_words(&r.way, &r.args, type_of(&r.element));
	rc = gf_comm_same_text(e->comm, "schedule", words, err);
	free(words);
	if (!rc && e->comm->rank == 0)
		rc = gf_prove_line(&r.way, &r.args, type_of(&r.element),
				   e->ops->schedule ? build : NULL, &subject,
				   out, err);
	return gf_comm_agree(e->comm, rc, err);
}

int gf_engine_prove(struct gf_engine *e, const struct gf_work *like, size_t n,
		    struct gf_text *out, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		rc = prove(e, &like[i], out, err);
	return rc;
}
