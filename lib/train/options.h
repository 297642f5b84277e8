/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_OPTIONS_H
#define GF_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/text.h"
#include "doc/training.h"
#include "train/place.h"
#include "train/train.h"

/* The command line's options for a training (cmd/gf-train.c has the table). */
struct gf_train_options {
	const char *plan, *model, *data, *device, *log, *trace, *training_file;
	struct gf_training training; /* strings borrowed from the arguments */
	const char *loss_scale;
	int bad_gradients; /* 0 end, 1 skip */
	int precision;     /* of gf_train_precisions */
	int transport;     /* enum gf_train_transport */
	const char *checkpoint, *weights, *export;
	size_t steps, top_k, checkpoint_every, check_every, log_every, threads;
	double timeout_s, target;
	bool resume, reshard, evaluate, replay, cuda_graph, no_cuda_graph, list,
		print_training;
};

/* In the order of what --precision knows. */
extern const enum gf_dtype gf_train_precisions[];

void gf_train_options_init(struct gf_train_options *o);
/* -EINVAL: the options contradict each other, whatever is in the documents.
 * Reads --loss-scale into the training. */
int gf_train_options_finish(struct gf_train_options *o, struct gf_error *err);
/* -EINVAL: the complete training does not heed an option that was given. */
int gf_train_options_heeded(const struct gf_train_options *o,
			    const struct gf_training *complete,
			    struct gf_error *err);
/* The rest of a configuration that options say: not the documents, and not the
 * place (train/load.h, train/place.h). Strings are borrowed. */
void gf_train_options_configure(const struct gf_train_options *o,
				struct gf_train_config *config);
struct gf_train_wish gf_train_options_wish(const struct gf_train_options *o);
void gf_train_options_release(struct gf_train_options *o);

/* The output of --list: selections, optimisers, schedules. The caller frees. */
char *gf_train_list(void);

#endif
