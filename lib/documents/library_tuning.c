/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/library_tuning.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/registry.h"
#include "base/units.h"

/* coll_tuned_allreduce_algorithm of Open MPI 4.1 to 6.0; the last since 5.0. Without a size, its
 * segmented ring does not cut. */
static const struct gf_dialect_word ompi_algorithms[] = {
	{"basic_linear", 1, false},       {"nonoverlapping", 2, false},
	{"recursive_doubling", 3, false}, {"ring", 4, false},
	{"segmented_ring", 5, true},      {"rabenseifner", 6, false},
	{"allgather_reduce", 7, false},   {NULL},
};

static const size_t ompi_segments[] = {16 << 10, 64 << 10, 256 << 10, 1024 << 10, 4096 << 10, 0};

/* NCCL_ALGO_* and NCCL_PROTO_* of NCCL's nccl_tuner.h. CollNet and NVLS have one protocol
 * (ncclTopoTuneModel of its src/graph/tuning.cc). */
static const struct gf_dialect_word nccl_algorithms[] = {
	{"tree", 0},
	{"ring", 1},
	{"collnet_direct", 2, .protocol = "simple"},
	{"collnet_chain", 3, .protocol = "simple"},
	{"nvls", 4, .protocol = "simple"},
	{"nvls_tree", 5, .protocol = "simple"},
	{NULL},
};

static const struct gf_dialect_word nccl_protocols[] = {
	{"ll", 0},
	{"ll128", 1},
	{"simple", 2},
	{NULL},
};

static const size_t nccl_channels[] = {1, 2, 4, 8, 16, 32, 0};

static const char as_it_is[] = "default";

const struct gf_dialect gf_dialects[] = {
	{"Open MPI", "ALGORITHM, or segmented_ring.SEGMENT", "MPI_Allreduce", as_it_is,
	 ompi_algorithms, NULL, ompi_segments},
	{"NCCL", "ALGORITHM.PROTOCOL, or ALGORITHM.PROTOCOL.CHANNELS", "ncclAllReduce", as_it_is,
	 nccl_algorithms, nccl_protocols, nccl_channels},
	{"RCCL", "ALGORITHM.PROTOCOL, or ALGORITHM.PROTOCOL.CHANNELS", "ncclAllReduce", as_it_is,
	 nccl_algorithms, nccl_protocols, nccl_channels},
	{NULL},
};

static const struct gf_dialect_word no_algorithms[] = {{NULL}};
const struct gf_dialect gf_dialect_blocking = {"MPI", "blocking", "MPI_Allreduce", "blocking",
					       no_algorithms};

const struct gf_dialect *gf_dialect_of(const char *library)
{
	const struct gf_dialect *d;

	for (d = gf_dialects; library && d->name; d++)
		if (strncmp(library, d->name, strlen(d->name)) == 0)
			return d;
	return NULL;
}

/* NCCL's NCCL_ALGO has NVLSTree for what its tuner calls nvls_tree. */
static bool is_same_word(const char *name, const char *word, size_t length)
{
	const char *end = word + length;

	for (;; name++, word++) {
		name += strspn(name, "_");
		while (word < end && *word == '_')
			word++;
		if (!*name || word == end)
			return !*name && word == end;
		if (strncasecmp(name, word, 1) != 0)
			return false;
	}
}

static const struct gf_dialect_word *find(const struct gf_dialect_word *table, const char *word,
					  size_t length)
{
	for (; table && table->name; table++)
		if (is_same_word(table->name, word, length))
			return table;
	return NULL;
}

bool gf_dialect_has(const struct gf_dialect *dialect, const char *text)
{
	return find(dialect->algorithms, text, strcspn(text, ".")) != NULL;
}

/* first: what else could stand there, or NULL. */
static int refuse(const char *first, const struct gf_dialect_word *table, const char *word,
		  size_t length, struct gf_error *err)
{
	const char *names[16] = {first};
	char got[GF_TUNING_TEXT];
	size_t n = first != NULL;

	snprintf(got, sizeof(got), "%.*s", (int)length, word);
	for (; table->name && n < GF_ARRAY_LENGTH(names) - 1; table++)
		names[n++] = table->name;
	names[n] = NULL;
	return gf_names_refuse(names, got, err);
}

/* What follows the algorithm. */
static int read_rest(const char *rest, struct gf_tuning *v, struct gf_error *err)
{
	size_t length = strcspn(rest, ".");
	long long channels;
	int rc;

	if (v->dialect->protocols) {
		v->protocol = find(v->dialect->protocols, rest, length);
		if (!v->protocol)
			return refuse(NULL, v->dialect->protocols, rest, length, err);
		rest += length;
		if (!*rest)
			return 0;
		rc = gf_units_int(rest + 1, 1, 64, &channels, err);
		v->channels = rc ? 0 : (int)channels;
		return rc;
	}
	if (!*rest)
		return 0;
	if (v->algorithm->segments)
		return gf_units_size(rest, &v->segment_bytes, err);
	return gf_error_set(err, -EINVAL, "%s is not cut into segments", v->algorithm->name);
}

int gf_tuning_read(const struct gf_dialect *dialect, const char *text, struct gf_tuning *v,
		   struct gf_error *err)
{
	size_t length = strcspn(text, ".");
	struct gf_tuning read = {.dialect = dialect};
	int rc = 0;

	if (strcasecmp(text, dialect->as_it_is) != 0) {
		read.algorithm = find(dialect->algorithms, text, length);
		rc = !read.algorithm
			     ? refuse(dialect->as_it_is, dialect->algorithms, text, length, err)
			     : read_rest(text + length + (text[length] == '.'), &read, err);
	}
	if (rc)
		gf_error_prefix(err, "%s's %s", dialect->name, dialect->call);
	else
		*v = read;
	return rc;
}

static void add_size(size_t bytes, char *text, size_t room)
{
	static const char letters[] = "\0KMG";
	size_t i = 0;

	for (; i < 3 && bytes % 1024 == 0 && bytes; i++)
		bytes /= 1024;
	snprintf(text, room, ".%zu%.1s", bytes, &letters[i]);
}

const char *gf_tuning_text(const struct gf_tuning *v, char text[GF_TUNING_TEXT])
{
	size_t n;

	if (!v->algorithm)
		return strcpy(text, v->dialect->as_it_is);
	snprintf(text, GF_TUNING_TEXT, "%s%s%s", v->algorithm->name, v->protocol ? "." : "",
		 v->protocol ? v->protocol->name : "");
	n = strlen(text);
	if (v->segment_bytes)
		add_size(v->segment_bytes, text + n, GF_TUNING_TEXT - n);
	if (v->channels)
		snprintf(text + n, GF_TUNING_TEXT - n, ".%d", v->channels);
	return text;
}

bool gf_tuning_same(const struct gf_tuning *a, const struct gf_tuning *b)
{
	return a->dialect == b->dialect && a->algorithm == b->algorithm &&
	       a->protocol == b->protocol && a->segment_bytes == b->segment_bytes &&
	       a->channels == b->channels;
}

/* The default; then each algorithm with each protocol, as it is and with each number. */
bool gf_tuning_at(const struct gf_dialect *d, size_t i, struct gf_tuning *v)
{
	static const struct gf_dialect_word none[] = {{""}, {NULL}};
	const struct gf_dialect_word *a, *p;
	size_t n = 0, here;

	*v = (struct gf_tuning){.dialect = d};
	if (i-- == 0)
		return true;
	while (d->tried && d->tried[n])
		n++;
	for (a = d->algorithms; a->name; a++)
		for (p = d->protocols ? d->protocols : none; p->name; p++) {
			if (a->protocol && strcmp(a->protocol, p->name) != 0)
				continue;
			here = a->segments ? n : d->protocols ? n + 1 : 1;
			if (i >= here) {
				i -= here;
				continue;
			}
			v->algorithm = a;
			v->protocol = d->protocols ? p : NULL;
			if (a->segments)
				v->segment_bytes = d->tried[i];
			else if (i > 0)
				v->channels = (int)d->tried[i - 1];
			return true;
		}
	return false;
}
