/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/transport.h"

#include <errno.h>
#include <inttypes.h>

#include "transport/comm.h"

#define OWN_CHANNELS (2 * GF_CHANNELS_OWN)

int gf_tag_pack(const struct gf_tag_bits *bits, uint64_t tag, const char *whose, uint64_t *packed,
		struct gf_error *err)
{
	uint64_t channel = tag >> 32, match = tag & UINT32_MAX;
	uint64_t channels = (uint64_t)1 << bits->channel;

	if (channel > GF_CHANNEL_LAST) {
		channel = channels - 1 - (GF_CHANNEL_GATHER - channel);
		channels = channel + 1;
	} else {
		channels -= OWN_CHANNELS;
	}
	if (channel >= channels || match >> bits->match)
		return gf_error_set(err, -EOVERFLOW,
				    "channel %" PRIu64 ", match %" PRIu64
				    ": more than %s tags hold (%d + %d bits)",
				    tag >> 32, match, whose, bits->channel, bits->match);
	*packed = channel << bits->match | match;
	return 0;
}
