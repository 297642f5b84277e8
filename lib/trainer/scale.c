/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/scale.h"

#include "collectives/codecs/codec.h"

#define MAX_SCALE 0x1p24

bool gf_loss_scale_wanted(const struct gf_plan *plan)
{
	const struct gf_codec *codec;

	for (size_t i = 0; i < plan->nmessages; i++) {
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

double gf_loss_scale_now(const struct gf_loss_scale *s)
{
	return s->half ? s->step : s->now;
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
	if (scale <= GF_LOSS_SCALE_LEAST)
		return false;
	/* of several in flight that were too large the first says it for all
	 */
	if (scale <= s->now)
		s->now /= 2;
	s->good = 0;
	return true;
}
