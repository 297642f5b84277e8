/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs of later versions of gradflow.h: both of them only ever grow. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "embed/embedded.h"

/* No version's is so large: a size that nobody has set. */
#define MOST_BYTES 4096

/* Copies what this version knows; the rest must be zero. */
static int take(const void *from, size_t given, void *to, size_t known,
		struct gf_error *err)
{
	const unsigned char *bytes = from;
	size_t i;

	for (i = known; i < given; i++)
		if (bytes[i])
			return gf_error_set(
				err, -EINVAL,
				"want zeros after the %zu bytes that this "
				"version knows, got %d in byte %zu of %zu",
				known, bytes[i], i, given);
	memcpy(to, from, known);
	return 0;
}

static int check_size(size_t size, size_t least, struct gf_error *err)
{
	if (size >= least && size <= MOST_BYTES && size % sizeof(size_t) == 0)
		return 0;
	return gf_error_set(err, -EINVAL,
			    "want their size, %zu to %d bytes in words of %zu, "
			    "got %zu",
			    least, MOST_BYTES, sizeof(size_t), size);
}

static int check_seconds(const char *name, double seconds, struct gf_error *err)
{
	return seconds >= 0 && !isinf(seconds)
		       ? 0
		       : gf_error_set(err, -EINVAL,
				      "%s: want 0 or more, got %g", name,
				      seconds);
}

int gf_embed_take_exchange(const struct gradflow_exchange_options *from,
			   struct gradflow_exchange_options *to,
			   struct gf_error *err)
{
	int rc = check_size(from ? from->size : 0, sizeof(*to), err);

	rc = rc ? rc : take(from, from->size, to, sizeof(*to), err);
	if (rc)
		gf_error_prefix(err, "options");
	return rc ? rc : check_seconds("join_s", to->join_s, err);
}

int gf_embed_check_exchange(const struct gradflow_exchange_options *o,
			    struct gf_error *err)
{
	int rc = check_seconds("timeout_s", o->timeout_s, err);

	if (!rc && !(o->momentum >= 0 && o->momentum < 1))
		rc = gf_error_set(err, -EINVAL,
				  "momentum: want 0 or more, below 1, got %g",
				  o->momentum);
	if (!rc && !!o->plan + !!o->plan_text + !!o->messages > 1)
		rc = gf_error_set(err, -EINVAL,
				  "want one of plan, plan_text and messages at "
				  "most, got several");
	if (!rc && (o->messages || o->nmessages) &&
	    !(o->messages && o->nmessages))
		rc = gf_error_set(err, -EINVAL,
				  "want messages and nmessages, got one of "
				  "them");
	return rc;
}

int gf_embed_take_tensors(const struct gradflow_tensor *from, size_t ntensors,
			  size_t size, struct gradflow_tensor **to,
			  struct gf_error *err)
{
	const size_t step = size ? size : sizeof(**to);
	int rc = check_size(step, sizeof(**to), err);
	struct gradflow_tensor *t;
	size_t i;

	if (rc) {
		gf_error_prefix(err, "tensor_size");
		return rc;
	}
	if (!from || !ntensors)
		return gf_error_set(err, -EINVAL,
				    "want one tensor or more, got none");
	t = ntensors <= PTRDIFF_MAX / MOST_BYTES ? calloc(ntensors, sizeof(*t))
						 : NULL;
	if (!t) /* a caller who has counted wrong */
		return gf_error_set(err, -ENOMEM, "no memory for %zu tensors",
				    ntensors);
	for (i = 0; i < ntensors && !rc; i++) {
		rc = take((const char *)from + i * step, step, &t[i],
			  sizeof(*t), err);
		if (rc)
			gf_error_prefix(err, "tensor %zu", i);
	}
	if (rc)
		free(t);
	else
		*to = t;
	return rc;
}
