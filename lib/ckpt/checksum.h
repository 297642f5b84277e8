/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CKPT_CHECKSUM_H
#define GF_CKPT_CHECKSUM_H

#include <stddef.h>

#include "base/digest.h"

/*
 * A tensor's CRC-32 (that of zip and PNG), as a file's metadata holds it:
 *
 *	"crc32:fc.weight": "0a1b2c3d"
 *
 * Readers of the format that do not know it pass it over.
 */
#define GF_CHECKSUM_DIGITS 8

/* The key under which it lies; the caller frees. */
char *gf_checksum_key(const char *tensor);
/* The checksum of the data, as text. */
void gf_checksum(const void *data, size_t size_bytes,
		 char text[GF_CHECKSUM_DIGITS + 1]);

/* A file by its contents. */
struct gf_file_seal {
	size_t size_bytes;
	char sha256[GF_DIGEST_HEX];
};

/* Takes it from a digest that was given all bytes. */
void gf_seal_end(struct gf_file_seal *seal, struct gf_digest *d);

#endif
