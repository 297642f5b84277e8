/* SPDX-License-Identifier: BSD-3-Clause */
#include "ckpt/safetensors.h"

#include <stdio.h>

#include <zlib.h>

#include "base/heap.h"

char *gf_checksum_key(const char *tensor)
{
	return gf_xasprintf("crc32:%s", tensor);
}

void gf_checksum(const void *data, size_t size_bytes,
		 char text[GF_CHECKSUM_DIGITS + 1])
{
	/* without data zlib gives its start value, whatever there was */
	unsigned long crc = crc32_z(0, NULL, 0);

	if (size_bytes)
		crc = crc32_z(crc, data, size_bytes);
	snprintf(text, GF_CHECKSUM_DIGITS + 1, "%08lx", crc & 0xfffffffful);
}

void gf_seal_end(struct gf_file_seal *seal, struct gf_digest *d)
{
	unsigned char raw[GF_DIGEST_BYTES];

	seal->size_bytes = d->length_bytes;
	gf_digest_end(d, raw);
	gf_digest_hex(raw, seal->sha256);
}
