/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/steps.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/units.h"

#define MOST_STEPS  1000000000000000LL
#define MOST_EPOCHS 1e9

static const struct {
	const char *unit;
	double one, most; /* as people type them */
	enum gf_steps_of of;
} parts[] = {
	{"%", 0.01, 100, GF_STEPS_OF_RUN},
	{" epochs", 1, MOST_EPOCHS, GF_STEPS_OF_EPOCH},
	{"epochs", 1, MOST_EPOCHS, GF_STEPS_OF_EPOCH},
	{" epoch", 1, MOST_EPOCHS, GF_STEPS_OF_EPOCH},
	{"epoch", 1, MOST_EPOCHS, GF_STEPS_OF_EPOCH},
};

int gf_steps_parse(const char *text, size_t *steps, struct gf_steps_part *part,
		   struct gf_error *err)
{
	size_t length = strlen(text), i;
	long long whole = 0;
	GF_FREED char *number = NULL;
	double value;
	int rc;

	for (i = 0; i < GF_ARRAY_LENGTH(parts); i++) {
		size_t unit = strlen(parts[i].unit);

		if (length > unit && strcmp(text + length - unit, parts[i].unit) == 0)
			break;
	}
	if (i == GF_ARRAY_LENGTH(parts)) {
		if (gf_units_int(text, 0, MOST_STEPS, &whole, NULL))
			return gf_error_set(err, -EINVAL,
					    "want steps, epochs or a share of the run (100, "
					    "4epochs, 5%%), got %s",
					    text);
		*steps = (size_t)whole;
		*part = (struct gf_steps_part){0};
		return 0;
	}
	number = gf_xmemdup(text, length + 1);
	number[length - strlen(parts[i].unit)] = '\0';
	rc = gf_units_real(number, 0, parts[i].most, &value, err);
	if (rc)
		return rc;
	*steps = 0;
	*part = (struct gf_steps_part){value * parts[i].one, parts[i].of};
	if (!(value > 0))
		*part = (struct gf_steps_part){0};
	return 0;
}

void gf_steps_text(const struct gf_steps_part *part, struct gf_text *out)
{
	if (part->of == GF_STEPS_OF_RUN)
		gf_text_addf(out, "%.9g%%", 100 * part->share);
	else if (part->of == GF_STEPS_OF_EPOCH)
		gf_text_addf(out, "%.9g epochs", part->share);
}

void gf_steps_settle(size_t *steps, struct gf_steps_part *part, double epoch_steps,
		     double run_steps)
{
	double length = part->of == GF_STEPS_OF_RUN ? run_steps : epoch_steps;

	if (part->of == GF_STEPS_KNOWN || !(length > 0))
		return;
	*steps = (size_t)fmin(round(part->share * length), (double)MOST_STEPS);
	*part = (struct gf_steps_part){0};
}
