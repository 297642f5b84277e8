/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/training.h"

#include <math.h>
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
#define KEY(arg, text)          .unit = (arg), .help = (text)
#define OPTION(name, arg, text) .option = (name), KEY(arg, text)

static const char *const augmentations[] = {"none", "flip", "crop:4", "flip,resized-crop", NULL};
static const char *const exclusions[] = {"vectors", "none", NULL};

static const struct gf_field optimizer_fields[] = {
	{TEXT("name", optimizer)},
	{REAL("momentum", momentum, 0, 1), KEY("M", "the optimizer's momentum")},
	{REAL("weight_decay", weight_decay, 0, MAX_REAL), KEY("D", "the optimizer's weight decay")},
	{REAL("beta1", beta1, 0, BELOW_1),
	 KEY("B", "adamw: how much of the mean gradient stays in a step")},
	{REAL("beta2", beta2, 0, BELOW_1),
	 KEY("B", "adamw: how much of the mean square stays in a step")},
	{REAL("eta", eta, 0, MAX_REAL), KEY("E", "LARS's trust coefficient")},
	{REAL("epsilon", epsilon, 0, MAX_REAL), KEY("E", "what adamw and LARS add to the divisor")},
	{REAL("clip_norm", clip_norm, 0, MAX_REAL),
	 KEY("N", "scale larger gradients down to this norm; 0 is no limit")},
	{TEXT("exclude", exclude), .names = exclusions,
	 KEY("LIST", "tensors without weight decay and trust ratio: vectors, none, or patterns "
		     "(lars: vectors, else none)")},
	{NULL},
};

const struct gf_record gf_training_optimizer_record = {
	.bytes = sizeof(struct gf_training),
	.extra_offset = AT(optimizer_extra),
	.fields = optimizer_fields,
};

static const struct gf_field rate_fields[] = {
	{REAL("peak", rate, 0, MAX_REAL),
	 OPTION("lr", "RATE",
		"peak learning rate; a default but adamw's is scaled from a global batch of 64")},
	{REAL("for_batch", rate_batch, 1, 1e12),
	 KEY("N", "the rate of --lr is meant for a global batch of N, for another it is scaled "
		  "(never scaled)")},
	{REAL("warmup_epochs", warmup_epochs, 0, MAX_REAL),
	 KEY("EPOCHS", "raise the rate to its peak over EPOCHS")},
	{GF_MEMBER(schedule, GF_FIELD_CHOICE, GF_OMITTED), .names = gf_schedule_names,
	 .absent = GF_TRAINING_NO_CHOICE},
	{GF_MEMBER(drop_epochs, GF_FIELD_REALS, GF_OMITTED), .count_offset = AT(ndrops),
	 .high = MAX_REAL, KEY("LIST", "step: the epochs after which the rate drops")},
	{REAL("drop_factor", drop_factor, 0, 1), KEY("F", "step: the factor of each drop")},
	{REAL("power", power, 0, 100), KEY("P", "poly: the exponent")},
	{REAL("floor", floor, 0, 1), KEY("F", "cosine: the share of the peak that it ends at")},
	{NULL},
};

const struct gf_record gf_training_rate_record = {
	.bytes = sizeof(struct gf_training),
	.extra_offset = AT(rate_extra),
	.fields = rate_fields,
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

static const struct gf_field training_fields[] = {
	{TEXT("producer", producer)},
	{TEXT("model", model)},
	{TEXT("plan", plan)},
	{COUNT("epochs", epochs), OPTION("epochs", "N", "passes over the training data")},
	{COUNT("batch_per_rank", batch),
	 OPTION("batch", "N", "samples that a rank computes at once (the plan's, or 16)")},
	{COUNT("accumulate", accumulate),
	 OPTION("accumulate", "N",
		"exchange the mean gradient of N batches at once (the plan's, or 1)")},
	{GF_MEMBER(seed, GF_FIELD_SIZE, GF_OMITTED), .high = MAX_SEED,
	 .absent = (double)GF_TRAINING_NO_SEED,
	 OPTION("seed", "N", "seed of weights and data order")},
	{TEXT("augment", augment), .names = augmentations,
	 OPTION("augment", "LIST", "change training images: flip, crop:N, resized-crop")},
	{"optimizer", GF_FIELD_GROUP, GF_OMITTED, .record = &gf_training_optimizer_record},
	{"rate", GF_FIELD_GROUP, GF_OMITTED, .record = &gf_training_rate_record},
	{"loss_scale", GF_FIELD_GROUP, GF_OMITTED, .record = &scale_record},
	{NULL},
};
#undef COUNT
#undef REAL
#undef TEXT
#undef OPTION
#undef KEY

static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_training *t = item;
	int exponent;

	for (size_t i = 1; i < t->ndrops; i++)
		if (!(t->drop_epochs[i - 1] <= t->drop_epochs[i]))
			return gf_json_refuse(at, gf_json_path("rate/drop_epochs/%zu", i).text, err,
					      "want at least %g, the one before, got %g",
					      t->drop_epochs[i - 1], t->drop_epochs[i]);
	if (!isnan(t->scale) && frexp(t->scale, &exponent) != 0.5)
		return gf_json_refuse(at, "loss_scale/initial", err, "want a power of two, got %g",
				      t->scale);
	return 0;
}

const struct gf_record gf_training_record = {
	GF_RECORD(struct gf_training, training_fields),
	.finish = finish,
};

const struct gf_document_format gf_document_training = {
	.name = "gf-training",
	.description = "how a model is trained, apart from how gradients are exchanged",
	.record = &gf_training_record,
};

void gf_training_init(struct gf_training *t)
{
	memset(t, 0, sizeof(*t));
	gf_record_clear(&gf_training_record, t);
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
	gf_record_release(&gf_training_record, t);
}

void gf_training_copy(struct gf_training *copy, const struct gf_training *t)
{
	gf_record_copy(&gf_training_record, copy, t);
}

void gf_training_fill(struct gf_training *t, const struct gf_training *under)
{
	gf_record_fill(&gf_training_record, t, under);
}
