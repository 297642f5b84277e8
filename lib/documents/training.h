/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_TRAINING_H
#define GF_DOCUMENTS_TRAINING_H

#include <stddef.h>

#include "base/error.h"
#include "json/json.h"
#include "json/record.h"

/*
 * gf-training: how a model is trained, apart from how gradients are exchanged, which is the plan's
 * (gf-training(5)). A recipe also names its model and its plan. Every key may be absent, and the
 * struct can represent that. So the options, a file and the defaults are three structs of this
 * type, which gf_training_fill lays one over the other.
 */
enum gf_rate_schedule { /* as enum gf_rate_shape of trainer/optim/rate.h */
			GF_SCHEDULE_CONSTANT,
			GF_SCHEDULE_LINEAR,
			GF_SCHEDULE_COSINE,
			GF_SCHEDULE_STEP,
			GF_SCHEDULE_POLY
};
enum gf_scaling {
	GF_SCALING_AUTO, /* dynamic if a message of the plan, or compute, is f16, else none */
	GF_SCALING_NONE,
	GF_SCALING_STATIC,
	GF_SCALING_DYNAMIC
};
extern const char *const gf_schedule_names[];
extern const char *const gf_scaling_names[]; /* auto none static dynamic */

#define GF_TRAINING_NO_CHOICE (-1)
#define GF_TRAINING_NO_SEED   ((size_t)1 << 62)

/* Absent: 0 for counts, NAN for numbers, the two above for choices and the seed, NULL for strings
 * and lists. */
struct gf_training {
	char *producer;
	char *model, *plan; /* names of shipped ones, for want of others */
	size_t epochs;
	size_t batch;      /* per rank, and per micro-batch */
	size_t accumulate; /* micro-batches per exchange */
	size_t seed;
	char *augment; /* of images, as data/augment.h reads it */
	/* optimizer */
	char *optimizer; /* a name of optim's registry */
	double momentum, weight_decay, beta1, beta2, eta, epsilon, clip_norm;
	char *exclude;
	/* rate */
	double rate;       /* the peak */
	double rate_batch; /* the global batch that it is meant for */
	double warmup_epochs;
	int schedule; /* enum gf_rate_schedule */
	double *drop_epochs;
	size_t ndrops;
	double drop_factor, power, floor;
	/* loss_scale */
	int scaling; /* enum gf_scaling */
	double scale;
	size_t growth_steps;
	/* x- keys */
	char *extra, *optimizer_extra, *rate_extra, *scale_extra;
};

/* The keys: of the document, of its optimizer and of its rate, whose structs are gf_training, too.
 * A string's names are suggestions. */
extern const struct gf_record gf_training_record;
extern const struct gf_record gf_training_optimizer_record, gf_training_rate_record;

/* Everything absent. */
void gf_training_init(struct gf_training *t);
/* The reader's checks, for structs made by code. */
int gf_training_check(const struct gf_training *t, struct gf_error *err);
char *gf_training_write(const struct gf_training *t);
void gf_training_release(struct gf_training *t);
void gf_training_copy(struct gf_training *copy, const struct gf_training *t);
/* Copies from `under` every field that is absent in t. */
void gf_training_fill(struct gf_training *t, const struct gf_training *under);

#endif
