/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_MASK_H
#define GF_DATA_MASK_H

#include "data/dataset.h"

/*
 * Masked words, for a model that reads ahead (Devlin et al. 2019, "BERT",
 * section 3.1). The model is asked for 15 % of a sample's numbers, at least
 * one, and the other positions have no label. Of these numbers 80 % are
 * replaced by the mask, 10 % by any number, and 10 % stay.
 *
 * What is masked depends on the seed, the epoch and the sample alone, as
 * augmentation does. All samples have equally many labels, so that a mean over
 * the samples of all ranks is the mean over their labels.
 */

/* The mask is d->vocabulary, the number after the text's own. */
void gf_mask_init(struct gf_dataset *d);

/* One sample, in place; its labels become the numbers that were masked. Other
 * data stay. The test part is masked the same in each epoch. */
void gf_mask_sample(const struct gf_dataset *d, enum gf_part part,
		    uint64_t seed, size_t epoch, size_t index, float *values,
		    int32_t *labels);

#endif
