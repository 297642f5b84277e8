/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "doc/algorithm_traits.h"
#include "planner/axes.h"

/* Axes as people type them. */

/* The algorithm after a factor's colon. */
static int read_algorithm(const char *name, struct gf_stage *stage,
			  struct gf_error *err)
{
	stage->algorithm = (char *)gf_stage_algorithm(name);
	return gf_stage_check(name, stage->factor, err);
}

static int add_factor(struct gf_axes *a, char *text, struct gf_error *err)
{
	struct gf_stage stage = {0};
	char *name = strchr(text, ':');
	long long factor = 0;
	int rc;

	if (name)
		*name++ = '\0';
	rc = gf_units_int(text, 1, GF_RANKS_MAX, &factor, err);
	stage.factor = (int)factor;
	if (rc == 0 && name)
		rc = read_algorithm(name, &stage, err);
	if (rc < 0 || factor == 1)
		return rc;
	a->factors = gf_xreallocarray(a->factors, a->nfactors + 1,
				      sizeof(*a->factors));
	a->factors[a->nfactors++] = stage;
	return 0;
}

int gf_axes_read_factors(const char *text, void *axes, struct gf_error *err)
{
	struct gf_axes *a = axes;
	char *copy = gf_xstrdup(text), *rest = copy, *part;
	int rc = 0;

	a->nfactors = 0;
	a->factored = true;
	while (rc == 0 && (part = strsep(&rest, "x,")))
		rc = add_factor(a, part, err);
	free(copy);
	return rc;
}

int gf_axes_read_hide(const char *text, void *share, struct gf_error *err)
{
	double got = 0;
	int rc = gf_units_real(text, 0, 1, &got, err);

	if (rc == 0 && !(got > 0 && got < 1))
		rc = gf_error_set(err, -EINVAL,
				  "want a share between 0 and 1, e.g. 5%%, got "
				  "\"%s\"",
				  text);
	if (rc == 0)
		*(double *)share = got;
	return rc;
}

void gf_axes_release(struct gf_axes *a)
{
	free(a->factors);
	gf_axes_init(a);
}

int gf_axes_read_warmup(const char *text, void *axes, struct gf_error *err)
{
	struct gf_axes *a = axes;

	return gf_steps_parse(text, &a->pipeline_warmup_steps,
			      &a->pipeline_warmup_part, err);
}
