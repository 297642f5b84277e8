/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CHECKPOINTS_SAFETENSORS_H
#define GF_CHECKPOINTS_SAFETENSORS_H

#include <stddef.h>

#include "base/error.h"
#include "json/json.h"
#include "base/digest.h"

/*
 * A tensor's CRC-32 (that of zip and PNG), as a file's metadata holds it:
 *
 *	"crc32:fc.weight": "0a1b2c3d"
 *
 * Readers of the format that do not know it pass it over.
 */
#define GF_CHECKSUM_KEY    "crc32:%s" /* of a tensor's name */
#define GF_CHECKSUM_DIGITS 8

/* The checksum of the data, as text. */
void gf_checksum(const void *data, size_t size_bytes, char text[GF_CHECKSUM_DIGITS + 1]);

/* A file by its contents. */
struct gf_file_seal {
	size_t size_bytes;
	char sha256[GF_DIGEST_HEX];
};

/* Takes it from a digest that was given all bytes. */
void gf_seal_end(struct gf_file_seal *seal, struct gf_digest *d);

/*
 * The safetensors format (Hugging Face). A file is a 64-bit little-endian
 * length N, N bytes of JSON, then the data. The JSON is
 *	{"<name>": {"dtype", "shape", "data_offsets": [begin, end]}, ...,
 *	 "__metadata__": {"k": "v"}}
 * and the data are little-endian and row-major; the tensors cover them without
 * hole or overlap.
 *
 * A reader checks all of that before it hands out anything, and reads tensors
 * only when asked to: a file of many gigabytes costs its header. The writer
 * stores a checksum of every tensor (checkpoints/safetensors.h); loading a
 *tensor verifies its checksum, if the file has one.
 */
#define GF_STORED_MAX_RANK 8
/* No tensor's name. */
#define GF_SAFETENSORS_METADATA "__metadata__"

struct gf_stored_tensor {
	char *name;
	const char *dtype; /* F32, U64, U8, ... */
	size_t count_elems;
	size_t begin, end; /* bytes, in the data */
};

struct gf_safetensors {
	char *path;
	int fd;
	size_t data_offset; /* of the data in the file */
	struct gf_json *header;
	struct gf_stored_tensor *tensors; /* in order of their data */
	size_t ntensors;
};

/* -EINVAL with "<path>: ..." for anything but a sound file. */
int gf_safetensors_open(const char *path, struct gf_safetensors *s, struct gf_error *err);
void gf_safetensors_close(struct gf_safetensors *s);

/* Reads a tensor, which must have that dtype and number of elements, and verifies its checksum.
 * After a failure the contents of `out` are undefined. */
int gf_safetensors_load(const struct gf_safetensors *s, const char *name, const char *dtype,
			size_t count_elems, void *out, struct gf_error *err);

bool gf_safetensors_has_metadata(const struct gf_safetensors *s, const char *key);
/* A value of __metadata__, copied; -EINVAL if it is not there. */
int gf_safetensors_metadata(const struct gf_safetensors *s, const char *key, char **value,
			    struct gf_error *err);
/* A value of __metadata__ that is a whole number in [low, high]; -EINVAL if it is not there, or is
 * another. */
int gf_safetensors_metadata_size(const struct gf_safetensors *s, const char *key, size_t low,
				 size_t high, size_t *value, struct gf_error *err);

/* A tensor to be written: borrowed data, `dims` of `rank` sizes. */
struct gf_tensor_source {
	const char *name;
	const char *dtype;
	size_t rank, dims[GF_STORED_MAX_RANK];
	const void *data;
	/* Makes the data whole on this rank, which has parts of it; or lets go what is not this
	 * rank's. All ranks call it together, where they write, compare or have read the tensor.
	 * (optional: it is whole) */
	int (*bring)(void *ctx, const struct gf_tensor_source *t, bool whole, struct gf_error *err);
	void *ctx;
	bool elsewhere; /* it is brought together for another rank's file */
};

struct gf_metadata {
	const char *key, *value;
};

/* Writes a file, synced, whole or not at all. Tensors are laid out by falling element size, then
 * name, as the format's own writer does. *seal is that of what was to be written. No link is
 * followed. */
int gf_safetensors_write(const char *path, const struct gf_tensor_source *t, size_t ntensors,
			 const struct gf_metadata *metadata, size_t nmetadata,
			 struct gf_file_seal *seal, struct gf_error *err);

/* Reads all of an open file. */
int gf_safetensors_seal(const struct gf_safetensors *s, struct gf_file_seal *seal,
			struct gf_error *err);

/* Bytes of one element; 0 for a dtype that is not known. */
size_t gf_safetensors_elem_bytes(const char *dtype);

/* The table's own copy of a dtype's name, or NULL: a name that needs no owner. */
const char *gf_dtype_intern(const char *name);

#endif
