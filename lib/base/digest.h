/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_DIGEST_H
#define GF_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define GF_DIGEST_BYTES 32
#define GF_DIGEST_BLOCK 64
/* 64 hexadecimal digits + NUL; with "sha256:" before them */
#define GF_DIGEST_HEX  65
#define GF_DIGEST_TEXT 72

/* SHA-256 (FIPS 180-4), in pieces or at once. */
struct gf_digest {
	uint32_t state[8];
	uint64_t length_bytes;
	unsigned char block[GF_DIGEST_BLOCK];
};

void gf_digest_init(struct gf_digest *d);
void gf_digest_add(struct gf_digest *d, const void *data, size_t size);
void gf_digest_end(struct gf_digest *d, unsigned char out[GF_DIGEST_BYTES]);

void gf_digest_hex(const unsigned char raw[GF_DIGEST_BYTES], char out[GF_DIGEST_HEX]);
/* "sha256:<hex>" of a whole buffer. */
void gf_digest_text(const void *data, size_t size, char out[GF_DIGEST_TEXT]);

#endif
