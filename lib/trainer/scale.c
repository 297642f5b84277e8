/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/scale.h"

#include <errno.h>
#include <stdio.h>

#include "collectives/codecs/codec.h"

/* A gradient that overflows f16 unscaled and divided by the ranks is none that a training
 * survives. */
#define MIN_SCALE 1.0
#define MAX_SCALE 0x1p24

bool gf_loss_scale_wanted(const struct gf_plan *plan)
{
	const struct gf_codec *codec;
	size_t i;

	for (i = 0; i < plan->nmessages; i++) {
		codec = gf_codec_find(plan->messages[i].codec);
		if (codec && codec->greatest > 0)
			return true;
	}
	return false;
}

int gf_loss_scale_init(struct gf_loss_scale *s, const struct gf_training *t,
		       const struct gf_plan *plan, bool half, struct gf_error *err)
{
	/* sparse sets travel as they are */
	bool scales = gf_selection_has(&plan->selection, GF_SELECT_SCALES);
	bool narrow = scales && gf_loss_scale_wanted(plan);
	enum gf_scaling mode = (enum gf_scaling)t->scaling;

	if (mode == GF_SCALING_AUTO)
		mode = narrow || (half && scales) ? GF_SCALING_DYNAMIC : GF_SCALING_NONE;
	if (mode != GF_SCALING_NONE && !scales)
		return gf_error_set(
			err, -EINVAL,
			"loss_scale: selection \"%s\" sends gradients as they are, want \"none\"",
			gf_selection_name(&plan->selection));
	*s = (struct gf_loss_scale){
		.used = narrow || mode != GF_SCALING_NONE,
		.dynamic = mode == GF_SCALING_DYNAMIC,
		.growth_steps = t->growth_steps,
		.now = mode == GF_SCALING_NONE ? 1 : t->scale,
		.half = half && mode != GF_SCALING_NONE,
	};
	s->step = s->next = s->now;
	return 0;
}

void gf_loss_scale_next(struct gf_loss_scale *s)
{
	s->step = s->next = s->now;
}

double gf_loss_scale_now(const struct gf_loss_scale *s)
{
	return s->half ? s->step : s->now;
}

const char *gf_loss_scale_name(const struct gf_loss_scale *s)
{
	return gf_scaling_names[s->dynamic ? GF_SCALING_DYNAMIC
				: s->used  ? GF_SCALING_STATIC
					   : GF_SCALING_NONE];
}

bool gf_loss_scale_note(struct gf_loss_scale *s, double scale, bool bad)
{
	if (!s->dynamic)
		return false;
	if (!bad) {
		if (++s->good >= s->growth_steps && s->now < MAX_SCALE) {
			s->now *= 2;
			s->good = 0;
		}
		return false;
	}
	if (scale <= MIN_SCALE)
		return false;
	/* of several in flight that were too large the first says it for all
	 */
	if (scale <= s->now)
		s->now /= 2;
	s->good = 0;
	return true;
}

void gf_loss_scale_blame(const struct gf_loss_scale *s, char text[96])
{
	static const char diverged[] = "training has diverged";

	if (s->dynamic || s->now <= MIN_SCALE)
		snprintf(text, 96, "%s", diverged);
	else
		snprintf(text, 96, "the loss scale of %.0f is too large, or %s", s->now, diverged);
}
