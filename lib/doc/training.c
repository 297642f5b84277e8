/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/record.h"

#define FORMAT "gf-training"

const char *const gf_schedule_names[] = {"constant", "linear", "cosine",
					 "step",     "poly",   NULL};
const char *const gf_scaling_names[] = {"auto", "none", "static", "dynamic",
					NULL};

#define MAX_SEED 1e15
#define MAX_REAL 1e9
#define BELOW_1  0.999999 /* AdamW divides by 1 - beta; an average moves */
/* Scales are powers of two: multiplying by one and dividing again is exact. */
#define MIN_SCALE 0x1p-40
#define MAX_SCALE 0x1p40

/* --- optimizer, rate, loss_scale: objects whose members are the struct's -- */

#define AT(member) offsetof(struct gf_training, member)
#define REAL(key, member, from, to)                                            \
	{                                                                      \
		key, GF_FIELD_REAL, GF_OMITTED, .offset = AT(member),          \
						.low = (from), .high = (to),   \
						.absent = NAN                  \
	}
#define COUNT(key, member)                                                     \
	{                                                                      \
		key, GF_FIELD_SIZE, GF_OMITTED, .offset = AT(member),          \
						.low = 1, .high = GF_MAX_COUNT \
	}
static const struct gf_field optimizer_fields[] = {
	{"name", GF_FIELD_STRING, GF_OMITTED, .offset = AT(optimizer)},
	REAL("momentum", momentum, 0, 1),
	REAL("weight_decay", weight_decay, 0, MAX_REAL),
	REAL("beta1", beta1, 0, BELOW_1),
	REAL("beta2", beta2, 0, BELOW_1),
	REAL("eta", eta, 0, MAX_REAL),
	REAL("epsilon", epsilon, 0, MAX_REAL),
	REAL("clip_norm", clip_norm, 0, MAX_REAL),
	{"exclude", GF_FIELD_STRING, GF_OMITTED, .offset = AT(exclude)},
	{NULL},
};

static const struct gf_record optimizer_record = {
	.extra_offset = AT(optimizer_extra),
	.fields = optimizer_fields,
};

static const struct gf_field rate_fields[] = {
	REAL("peak", rate, 0, MAX_REAL),
	REAL("for_batch", rate_batch, 1, 1e12),
	REAL("warmup_epochs", warmup_epochs, 0, MAX_REAL),
	{"schedule", GF_FIELD_CHOICE, GF_OMITTED, .offset = AT(schedule),
	 .names = gf_schedule_names, .absent = GF_TRAINING_NO_CHOICE},
	{"drop_epochs", GF_FIELD_REALS, GF_OMITTED, .offset = AT(drop_epochs),
	 .count_offset = AT(ndrops), .high = MAX_REAL},
	REAL("drop_factor", drop_factor, 0, 1),
	REAL("power", power, 0, 100),
	REAL("floor", floor, 0, 1),
	{NULL},
};

static const struct gf_record rate_record = {
	.extra_offset = AT(rate_extra),
	.fields = rate_fields,
};

static const struct gf_field scale_fields[] = {
	{"mode", GF_FIELD_CHOICE, GF_OMITTED, .offset = AT(scaling),
	 .names = gf_scaling_names, .absent = GF_TRAINING_NO_CHOICE},
	REAL("initial", scale, MIN_SCALE, MAX_SCALE),
	COUNT("growth_steps", growth_steps),
	{NULL},
};

static const struct gf_record scale_record = {
	.extra_offset = AT(scale_extra),
	.fields = scale_fields,
};

static const struct gf_field training_fields[] = {
	{"producer", GF_FIELD_STRING, GF_OMITTED, .offset = AT(producer)},
	COUNT("epochs", epochs),
	COUNT("batch_per_rank", batch),
	COUNT("accumulate", accumulate),
	{"seed", GF_FIELD_SIZE, GF_OMITTED, .offset = AT(seed),
	 .high = MAX_SEED, .absent = (double)GF_TRAINING_NO_SEED},
	{"augment", GF_FIELD_STRING, GF_OMITTED, .offset = AT(augment)},
	REAL("label_smoothing", label_smoothing, 0, 1),
	REAL("ema_decay", ema_decay, 0, BELOW_1),
	{"optimizer", GF_FIELD_GROUP, GF_OMITTED, .record = &optimizer_record},
	{"rate", GF_FIELD_GROUP, GF_OMITTED, .record = &rate_record},
	{"loss_scale", GF_FIELD_GROUP, GF_OMITTED, .record = &scale_record},
	{NULL},
};
#undef COUNT
#undef REAL

static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_training *t = item;
	char place[48];
	size_t i;
	int exponent;

	for (i = 1; i < t->ndrops; i++) {
		if (t->drop_epochs[i - 1] <= t->drop_epochs[i])
			continue;
		snprintf(place, sizeof(place), "rate/drop_epochs/%zu", i);
		return gf_json_refuse(at, place, err,
				      "want at least %g, the one before, got "
				      "%g",
				      t->drop_epochs[i - 1], t->drop_epochs[i]);
	}
	if (!isnan(t->scale) && frexp(t->scale, &exponent) != 0.5)
		return gf_json_refuse(at, "loss_scale/initial", err,
				      "want a power of two, got %g", t->scale);
	return 0;
}

static const struct gf_record training_record = {
	GF_RECORD(struct gf_training, training_fields),
	.finish = finish,
};
#undef AT

void gf_training_init(struct gf_training *t)
{
	memset(t, 0, sizeof(*t));
	gf_record_clear(&training_record, t);
}

int gf_training_read(const struct gf_json *root, const char *file,
		     struct gf_training *t, struct gf_error *err)
{
	return gf_document_read(root, file, FORMAT, &training_record, t, err);
}

int gf_training_check(const struct gf_training *t, struct gf_error *err)
{
	return gf_document_check(FORMAT, &training_record, t, err);
}

char *gf_training_write(const struct gf_training *t)
{
	return gf_document_write(FORMAT, &training_record, t);
}

void gf_training_release(struct gf_training *t)
{
	gf_record_release(&training_record, t);
}

void gf_training_copy(struct gf_training *copy, const struct gf_training *t)
{
	gf_record_copy(&training_record, copy, t);
}

void gf_training_fill(struct gf_training *t, const struct gf_training *under)
{
	gf_record_fill(&training_record, t, under);
}
