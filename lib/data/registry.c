/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <stddef.h>


/*
 * To add a data format: one file here that recognises a folder, opens it and hands out samples
 * (data_parts.h), and a row below; a paragraph in gf-train(1), hostile files in
 * tests/unit/test_data_*.c.
 *
 * Formats are asked in this order whether they recognise a path.
 */
const struct gf_data_format *const gf_data_formats[] = {
	&gf_data_synthetic, &gf_data_idx,   &gf_data_cifar10, &gf_data_cifar100,
	&gf_data_words,     &gf_data_chars, &gf_data_jpeg,    NULL,
};

#if GF_HAVE_JPEG
gf_jpeg_reader *const gf_data_jpeg_reader = gf_jpeg_read;
#else
gf_jpeg_reader *const gf_data_jpeg_reader = NULL;
#endif
