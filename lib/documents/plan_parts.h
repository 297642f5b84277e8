/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_PLAN_PARTS_H
#define GF_DOCUMENTS_PLAN_PARTS_H

#include "documents/plan.h"
#include "json/record.h"

/* The parts of a plan that tables cannot describe; for lib/documents alone. */

/* `tensors`: the model's, each with its type. The place is the plan. */
extern const struct gf_field_own gf_plan_tensors_own;
/* `selection`: its keys depend on the method. The place is the selection (selection.c). */
extern const struct gf_field_own gf_selection_own;
/* `period`: the same. The place is the period (period.c). */
extern const struct gf_field_own gf_period_own;
extern const struct gf_record gf_message_record;    /* struct gf_message */
extern const struct gf_record gf_prediction_record; /* its struct */

/* The exchange of a group, and that between groups, as plans that borrow all they have from this
 * one. */
struct gf_plan gf_period_inner_view(const struct gf_plan *p);
struct gf_plan gf_period_outer_view(const struct gf_plan *p);

/* Are the message's tensors those of the plan's model? */
static inline bool gf_plan_has(const struct gf_plan *p, const struct gf_message *m)
{
	return p->model && m->first <= m->last && m->last < p->model->ntensors;
}

/* Everything that must hold between the keys of a plan; fills types, and a rule plan's lanes. */
int gf_plan_finish(const struct gf_json_at *at, void *plan, struct gf_error *err);

#endif
