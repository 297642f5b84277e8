/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/record.h"

const char *const gf_schedule_names[] = {"constant", "linear", "cosine", "step", "poly", NULL};
const char *const gf_scaling_names[] = {"auto", "none", "static", "dynamic", NULL};

#define MAX_SEED 1e15
#define MAX_REAL 1e9
#define BELOW_1  0.999999 /* AdamW divides by 1 - beta */
/* Scales are powers of two: multiplying by one and dividing again is exact. */
#define MIN_SCALE 0x1p-40
#define MAX_SCALE 0x1p40

/* --- optimizer, rate, loss_scale: objects whose members are the struct's -- */

#define AT(member) offsetof(struct gf_training, member)
#define REAL(key, member, from, to)                                                                \
	key, GF_FIELD_REAL, GF_OMITTED, .offset = AT(member), .low = (from), .high = (to),         \
					.absent = NAN
#define COUNT(key, member)                                                                         \
	key, GF_FIELD_SIZE, GF_OMITTED, .offset = AT(member), .low = 1, .high = GF_MAX_COUNT
#define TEXT(key, member)       key, GF_FIELD_STRING, GF_OMITTED, .offset = AT(member)
#define OPTION(name, arg, text) .option = (name), .unit = (arg), .help = (text)

static const char *const augmentations[] = {"none", "flip", "crop:4", "flip,resized-crop", NULL};
static const char *const exclusions[] = {"vectors", "none", NULL};

const struct gf_field gf_training_optimizer_fields[] = {
	{TEXT("name", optimizer)},
	{REAL("momentum", momentum, 0, 1),
	 OPTION("momentum", "M", "the optimizer's momentum (0.9)")},
	{REAL("weight_decay", weight_decay, 0, MAX_REAL),
	 OPTION("weight-decay", "D", "the optimizer's weight decay (5e-3; adamw: 0.01)")},
	{REAL("beta1", beta1, 0, BELOW_1),
	 OPTION("beta1", "B", "adamw: how much of the mean gradient stays in a step (0.9)")},
	{REAL("beta2", beta2, 0, BELOW_1),
	 OPTION("beta2", "B", "adamw: how much of the mean square stays in a step (0.999)")},
	{REAL("eta", eta, 0, MAX_REAL), OPTION("eta", "E", "LARS's trust coefficient (0.02)")},
	{REAL("epsilon", epsilon, 0, MAX_REAL),
	 OPTION("epsilon", "E", "what adamw (1e-8) and LARS (0) add to the divisor")},
	{REAL("clip_norm", clip_norm, 0, MAX_REAL),
	 OPTION("clip-norm", "N", "scale larger gradients down to this norm; 0 is no limit (0)")},
	{TEXT("exclude", exclude), .names = exclusions,
	 OPTION("exclude", "LIST",
		"tensors without weight decay and trust ratio: vectors, none, or patterns (lars: "
		"vectors, else none)")},
	{NULL},
};

static const struct gf_record optimizer_record = {
	.extra_offset = AT(optimizer_extra),
	.fields = gf_training_optimizer_fields,
};

const struct gf_field gf_training_rate_fields[] = {
	{REAL("peak", rate, 0, MAX_REAL),
	 OPTION("lr", "RATE",
		"peak learning rate (0.1 for a global batch of 64, scaled; adamw: 1e-3)")},
	{REAL("for_batch", rate_batch, 1, 1e12),
	 OPTION("lr-batch", "N", "RATE is meant for a global batch of N: scale it to this run's")},
	{REAL("warmup_epochs", warmup_epochs, 0, MAX_REAL),
	 OPTION("warmup", "EPOCHS", "raise the rate to its peak over EPOCHS (1)")},
	{"schedule", GF_FIELD_CHOICE, GF_OMITTED, .offset = AT(schedule),
	 .names = gf_schedule_names, .absent = GF_TRAINING_NO_CHOICE,
	 OPTION("schedule", "NAME",
		"the rate after that: constant, linear, cosine, step or poly (cosine)")},
	{"drop_epochs", GF_FIELD_REALS, GF_OMITTED, .offset = AT(drop_epochs),
	 .count_offset = AT(ndrops), .high = MAX_REAL,
	 OPTION("drop-epochs", "LIST", "schedule step: the epochs after which the rate drops")},
	{REAL("drop_factor", drop_factor, 0, 1),
	 OPTION("drop-factor", "F", "schedule step: the factor of each drop (0.1)")},
	{REAL("power", power, 0, 100), OPTION("power", "P", "schedule poly: the exponent (2)")},
	{REAL("floor", floor, 0, 1),
	 OPTION("floor", "F", "schedule cosine: the share of the peak that it ends at (0)")},
	{NULL},
};

static const struct gf_record rate_record = {
	.extra_offset = AT(rate_extra),
	.fields = gf_training_rate_fields,
};

static const struct gf_field scale_fields[] = {
	{"mode", GF_FIELD_CHOICE, GF_OMITTED, .offset = AT(scaling), .names = gf_scaling_names,
	 .absent = GF_TRAINING_NO_CHOICE},
	{REAL("initial", scale, MIN_SCALE, MAX_SCALE)},
	{COUNT("growth_steps", growth_steps)},
	{NULL},
};

static const struct gf_record scale_record = {
	.extra_offset = AT(scale_extra),
	.fields = scale_fields,
};

const struct gf_field gf_training_fields[] = {
	{TEXT("producer", producer)},
	{TEXT("model", model)},
	{TEXT("plan", plan)},
	{COUNT("epochs", epochs), OPTION("epochs", "N", "passes over the training data (10)")},
	{COUNT("batch_per_rank", batch),
	 OPTION("batch", "N", "samples that a rank computes at once (the plan's, or 16)")},
	{COUNT("accumulate", accumulate),
	 OPTION("accumulate", "N",
		"exchange the mean gradient of N batches at once (the plan's, or 1)")},
	{"seed", GF_FIELD_SIZE, GF_OMITTED, .offset = AT(seed), .high = MAX_SEED,
	 .absent = (double)GF_TRAINING_NO_SEED,
	 OPTION("seed", "N", "seed of weights and data order (1)")},
	{TEXT("augment", augment), .names = augmentations,
	 OPTION("augment", "LIST", "change training images: flip, crop:N, resized-crop (none)")},
	{"optimizer", GF_FIELD_GROUP, GF_OMITTED, .record = &optimizer_record},
	{"rate", GF_FIELD_GROUP, GF_OMITTED, .record = &rate_record},
	{"loss_scale", GF_FIELD_GROUP, GF_OMITTED, .record = &scale_record},
	{NULL},
};
#undef COUNT
#undef REAL
#undef TEXT
#undef OPTION

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
		return gf_json_refuse(at, place, err, "want at least %g, the one before, got %g",
				      t->drop_epochs[i - 1], t->drop_epochs[i]);
	}
	if (!isnan(t->scale) && frexp(t->scale, &exponent) != 0.5)
		return gf_json_refuse(at, "loss_scale/initial", err, "want a power of two, got %g",
				      t->scale);
	return 0;
}

static const struct gf_record training_record = {
	GF_RECORD(struct gf_training, gf_training_fields),
	.finish = finish,
};

const struct gf_document_format gf_document_training = {
	.name = "gf-training",
	.description = "how a model is trained, apart from how gradients are exchanged",
	.record = &training_record,
};
#undef AT

void gf_training_init(struct gf_training *t)
{
	memset(t, 0, sizeof(*t));
	gf_record_clear(&training_record, t);
}

int gf_training_read(const struct gf_json *root, const char *file, struct gf_training *t,
		     struct gf_error *err)
{
	return gf_document_read(root, file, &gf_document_training, t, err);
}

int gf_training_check(const struct gf_training *t, struct gf_error *err)
{
	return gf_document_check(&gf_document_training, t, err);
}

char *gf_training_write(const struct gf_training *t)
{
	return gf_document_write(&gf_document_training, t);
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
