/* SPDX-License-Identifier: BSD-3-Clause */
/* Codecs that are described by their names (collectives/codecs/codec.h). */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "collectives/codecs/codec.h"

/* Fractions of a bit are headers of blocks of so many elements. */
#define BLOCK_ELEMS 1024
#define BYTE_BITS   8
#define F32_BITS    32
#define NAME_MOST   96

static struct {
	pthread_mutex_t lock;
	struct gf_codec codecs[GF_CODECS_DESCRIBED + 1];
	char names[GF_CODECS_DESCRIBED][NAME_MOST];
	size_t n; /* grows; entries stay as they are */
} described = {.lock = PTHREAD_MUTEX_INITIALIZER};

int gf_codec_title_length(const char *name)
{
	return (int)strcspn(name, ":");
}

const struct gf_codec *gf_codec_described(size_t i)
{
	return i < described.n ? &described.codecs[i] : NULL;
}

/* Seconds per byte at that rate. */
static int read_rate(const char *value, double *s_per_byte, struct gf_error *err)
{
	double rate;
	int rc = gf_units_rate(value, &rate, err);

	if (rc == 0)
		*s_per_byte = 1 / rate;
	return rc;
}

static int read_bits(const char *value, struct gf_codec *c, struct gf_error *err)
{
	double bits;
	int rc = gf_units_real(value, 0, F32_BITS, &bits, err);

	if (rc < 0)
		return rc;
	if (!(bits > 0) || bits == F32_BITS)
		return gf_error_set(err, -EINVAL, "want more than 0 and less than 32, got %s",
				    value);
	c->elem_bits = (size_t)bits;
	c->block_elems = BLOCK_ELEMS;
	c->block_bytes = (size_t)ceil((bits - floor(bits)) * BLOCK_ELEMS / BYTE_BITS);
	return 0;
}

static int read_key(char *pair, struct gf_codec *c, struct gf_error *err)
{
	char *value = strchr(pair, '=');
	int rc;

	if (value)
		*value++ = '\0';
	if (!value || !*value)
		rc = gf_error_set(err, -EINVAL, "want KEY=VALUE, got \"%s\"", pair);
	else if (strcmp(pair, "bits") == 0)
		rc = read_bits(value, c, err);
	else if (strcmp(pair, "encode") == 0)
		rc = read_rate(value, &c->encode_s_per_byte, err);
	else if (strcmp(pair, "decode") == 0)
		rc = read_rate(value, &c->decode_s_per_byte, err);
	else
		return gf_error_set(err, -EINVAL, "want bits, encode or decode, got \"%s\"", pair);
	if (rc < 0)
		gf_error_prefix(err, "%s", pair);
	return rc;
}

static int read_description(const char *name, struct gf_codec *c, struct gf_error *err)
{
	char *copy = gf_xstrdup(name), *rest = copy, *title = strsep(&rest, ":"), *pair;
	int rc = 0;

	if (strlen(name) >= NAME_MOST || name[0] == ':' || !strchr(name, ':'))
		rc = gf_error_set(err, -EINVAL, "want NAME:bits=B,..., got \"%.40s\"", name);
	if (rc == 0 && gf_codec_find(title))
		rc = gf_error_set(err, -EINVAL, "want a name of your own, got that of %s", title);
	while (rc == 0 && (pair = strsep(&rest, ",")))
		rc = read_key(pair, c, err);
	if (rc == 0 && !c->block_elems)
		rc = gf_error_set(err, -EINVAL,
				  "want the bits of an element (bits=1.5), found none");
	free(copy);
	return rc;
}

int gf_codec_describe(const char *name, const struct gf_codec **codec, struct gf_error *err)
{
	struct gf_codec c = {.description = "described by its figures", .error = 1};
	size_t i;
	int rc = read_description(name, &c, err);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&described.lock);
	for (i = 0; i < described.n && strcmp(described.names[i], name) != 0; i++)
		;
	if (i < GF_CODECS_DESCRIBED && i == described.n) {
		strcpy(described.names[i], name);
		c.name = described.names[i];
		described.codecs[i] = c;
		described.n++;
	}
	pthread_mutex_unlock(&described.lock);
	if (i == GF_CODECS_DESCRIBED)
		return gf_error_set(err, -EINVAL, "want at most %d described codecs",
				    GF_CODECS_DESCRIBED);
	*codec = &described.codecs[i];
	return 0;
}
