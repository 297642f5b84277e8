/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/formats.h"

#include <stddef.h>

/* Formats are asked in this order whether they recognise a path. */
const struct gf_data_format *const gf_data_formats[] = {
	&gf_data_synthetic,
	&gf_data_idx,
	&gf_data_cifar10,
	&gf_data_cifar100,
	&gf_data_words,
	&gf_data_chars,
	NULL,
};
