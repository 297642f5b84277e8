/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_TAG_H
#define GF_COMM_TAG_H

#include <stdint.h>

#include "base/error.h"

/* How many bits of a transport's own tags hold channel and match. */
struct gf_tag_bits {
	int channel, match;
};

/* The tag in so many bits, channel above match. The library's own channels are
 * counted down from the top. -EOVERFLOW: it does not fit; `whose` tags they
 * are. */
int gf_tag_pack(const struct gf_tag_bits *bits, uint64_t tag, const char *whose,
		uint64_t *packed, struct gf_error *err);

#endif
