/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/contradictions.h"

#include <errno.h>
#include <string.h>

#include "codec/codec.h"
#include "doc/algorithm_traits.h"
#include "doc/wants.h"
#include "planner/policies.h"

/* Can the algorithm that was asked for add up what one of the codecs makes? */
static bool sums(const char *algorithm, const char *const *codecs)
{
	size_t i;

	if (!algorithm || !codecs ||
	    gf_algorithm_has(algorithm, GF_ALGORITHM_ENCODED))
		return true;
	for (i = 0; codecs[i]; i++)
		if (!gf_codec_find(codecs[i]) || gf_codec_find(codecs[i])->adds)
			return true;
	return false;
}

int gf_task_check_axes(const struct gf_task *t, const struct gf_policy *policy,
		       struct gf_error *err)
{
	const struct gf_select_plan *s = gf_selection_plan(&t->selection);
	size_t i;

	for (i = 0; t->problem.codecs && t->problem.codecs[i]; i++)
		if (s->encoding && !gf_codec_is_plain(t->problem.codecs[i]))
			return gf_error_set(err, -EINVAL,
					    "--codecs: want f32 with selection "
					    "%s, %s, got %s",
					    s->name, s->encoding,
					    t->problem.codecs[i]);
	if (!sums(t->problem.algorithm, t->problem.codecs))
		return gf_error_set(err, -ENOTSUP,
				    "--codecs: want numbers with algorithm %s, "
				    "which cannot sum encoded data, got %s",
				    t->problem.algorithm, t->problem.codecs[0]);
	if (!policy || !policy->halves)
		return 0;
	if (!(s->traits & GF_SELECT_HALVES))
		return gf_error_set(err, -EINVAL,
				    "--policy: want one that leaves messages "
				    "whole with selection %s, which %s, got "
				    "%s",
				    s->name,
				    s->traits & GF_SELECT_RECUTS
					    ? "cuts its messages anew in every "
					      "step"
					    : "gives its sums back at once",
				    policy->name);
	if (t->system.staleness > 1)
		return gf_error_set(err, -EINVAL,
				    "--policy: want one that leaves messages "
				    "whole with a staleness > 1, which leaves "
				    "no forward pass to wait in, got %s",
				    policy->name);
	return 0;
}

/* Messages hold tensors of one type: so many there are at the least. */
static int check_most(const struct gf_task *t, const struct gf_request *r,
		      struct gf_error *err)
{
	const struct gf_model_profile *m = t->problem.model;
	size_t least = 1, i;

	if (!r->max_messages)
		return 0;
	for (i = 1; i < m->ntensors; i++)
		least += m->tensors[i].dtype != m->tensors[i - 1].dtype;
	if (t->policy && t->policy != &gf_policy_optimal)
		return gf_error_set(err, -EINVAL,
				    "--max-messages: want policy auto or "
				    "optimal, got %s",
				    t->policy->name);
	if (gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		return gf_error_set(err, -EINVAL,
				    "--max-messages: want a selection that "
				    "leaves messages as they are, got %s",
				    gf_selection_name(&t->selection));
	if (t->system.staleness > 1 || r->halves)
		return gf_error_set(err, -EINVAL,
				    "--max-messages: want a staleness of 1 and "
				    "no --halves");
	if (r->max_messages < least)
		return gf_error_set(err, -EINVAL,
				    "--max-messages: want at least %zu, one "
				    "for every run of tensors of one type, "
				    "got %zu",
				    least, r->max_messages);
	return 0;
}

int gf_task_check_served(const struct gf_task *t, const struct gf_request *r,
			 struct gf_error *err)
{
	const struct gf_policy *p = t->policy;

	if (p && gf_request_has_threshold(r) && !p->thresholds &&
	    !gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		return gf_error_set(err, -EINVAL,
				    "--threshold: want policy threshold, ddp, "
				    "horovod or dear, or selection csc, got "
				    "policy %s",
				    p->name);
	if (p && r->halves && !p->halves)
		return gf_error_set(err, -EINVAL,
				    "--halves: want policy auto, got %s",
				    p->name);
	if (p && r->tolerance_asked && p != &gf_policy_optimal)
		return gf_error_set(err, -EINVAL,
				    "--tolerance: want policy auto or optimal, "
				    "got %s",
				    p->name);
	return check_most(t, r, err);
}

void gf_task_note_served(const struct gf_task *t, const struct gf_request *r,
			 const struct gf_plan *p, struct gf_text *notes)
{
	const struct gf_policy *found = gf_policy_find(p->policy);
	struct gf_text why = {0};

	(void)gf_plan_wants(p, false, 0, &why);
	if (why.length)
		gf_text_addf(notes,
			     "an optimiser that suits dense gradients wants "
			     "less rate or momentum, as gf-train gives it: "
			     "%s\n",
			     why.data);
	gf_text_release(&why);
	if (!t->policy && gf_request_has_threshold(r) && found &&
	    !found->thresholds &&
	    !gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		gf_text_addf(notes,
			     "%s is faster than policy threshold with %zu "
			     "bytes\n",
			     found->name, r->threshold_bytes);
}
