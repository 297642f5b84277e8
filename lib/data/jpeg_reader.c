/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <stddef.h>

#if GF_HAVE_JPEG
gf_jpeg_reader *const gf_data_jpeg_reader = gf_jpeg_read;
#else
gf_jpeg_reader *const gf_data_jpeg_reader = NULL;
#endif
