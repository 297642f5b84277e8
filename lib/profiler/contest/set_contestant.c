/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/contest.h"
#include "documents/selections/select_density.h"

#include <string.h>

#include "base/heap.h"
#include "collectives/codecs/encode.h"
#include "compressors/sets.h"

struct gf_contest_sparse {
	struct gf_contest_sparse_config config;
	struct gf_sparse_message message;
	struct gf_burst *burst;
	float *zeros; /* the residual of a first step */
	void *sets;
	size_t k;
	bool merges;
};

/* --- running --------------------------------------------------------------
 */

static int allocate(struct gf_contest_sparse *s, struct gf_error *err)
{
	struct gf_comm *c = s->config.comm;
	struct gf_sparse_message *m = &s->message;
	size_t count = s->config.count_elems;
	int rc;

	*m = (struct gf_sparse_message){
		.merges = s->merges,
		.ranks = c->ranks,
		.count_elems = count,
		.codec = s->config.codec,
	};
	rc = gf_sparse_init(m, s->k, err);
	s->zeros = calloc(count, sizeof(*s->zeros));
	m->scratch = malloc(gf_sparse_scratch_elems(m, s->k) * sizeof(*m->scratch));
	if (rc == 0 && (!s->zeros || !m->scratch))
		rc = gf_error_set(err, -ENOMEM, "no memory to select among %zu elements", count);
	rc = rc ?: c->ops->buffer_alloc(c, gf_sparse_sets_bytes(m, s->k), &s->sets, err);
	m->residual = s->zeros;
	m->sets = s->sets;
	return gf_comm_agree(c, rc, err);
}

static int open_burst(struct gf_contest_sparse *s, struct gf_error *err)
{
	struct gf_work goes = {0};
	struct gf_burst_message message = {
		.way = s->config.way,
		.element = gf_element_set(gf_sparse_set_bytes(&s->message, s->k), gf_sparse_merge,
					  &s->message),
	};

	gf_sparse_goes(&s->message, &goes);
	message.count_elems = goes.count_elems;
	message.half = goes.half;
	return gf_burst_new(&(struct gf_burst_config){.comm = s->config.comm,
						      .watch = s->config.watch,
						      .messages = &message,
						      .nmessages = 1,
						      .lanes = 1},
			    &s->burst, err);
}

int gf_contest_sparse_new(const struct gf_contest_sparse_config *config,
			  struct gf_contest_sparse **sparse, struct gf_error *err)
{
	struct gf_contest_sparse *s = gf_xcalloc(1, sizeof(*s));
	int rc;

	s->config = *config;
	s->k = gf_density_count(config->way.density, config->count_elems);
	s->merges = config->way.algorithm == gf_sparse_find(gf_wire_algorithm(GF_WIRE_MERGE));
	if (config->checks)
		rc = config->codec
			     ? gf_error_set(err, -ENOTSUP,
					    "%s between GPUs: want sets without a codec, got %s",
					    config->way.algorithm->name, config->codec->name)
			     : 0;
	else
		rc = allocate(s, err);
	if (rc == 0 && !config->checks)
		rc = open_burst(s, err);
	if (rc)
		gf_contest_sparse_free(s);
	else
		*sparse = s;
	return rc;
}

void gf_contest_sparse_free(struct gf_contest_sparse *s)
{
	/* as a burst's memory: others may still read the sets */
	if (!s || (s->config.comm->broken && s->sets))
		return;
	gf_burst_free(s->burst);
	if (s->sets)
		s->config.comm->ops->buffer_free(s->config.comm, s->sets);
	free(s->message.scratch);
	gf_sparse_release(&s->message);
	free(s->zeros);
	free(s);
}

int gf_contest_sparse_send(struct gf_contest_sparse *s, float *data, struct gf_error *err)
{
	struct gf_sparse_message *m = &s->message;
	int rc;

	m->data = data;
	gf_sparse_select(m, s->k, s->config.comm->rank);
	rc = gf_burst_send(s->burst, s->sets, err);
	if (rc)
		return rc;
	gf_sparse_conclude(m);
	memset(data, 0, m->count_elems * sizeof(*data));
	gf_sparse_add(m, data);
	return 0;
}

struct gf_burst *gf_contest_sparse_burst(const struct gf_contest_sparse *s)
{
	return s->burst;
}

/* --- checking -------------------------------------------------------------
 *
 * Selections and merges are done here by other means. Under a codec the values of a set are what
 * the codec leaves of them, wherever a set is encoded.
 */

struct entry {
	size_t index;
	float value;
};

/* Rises with the magnitude. */
static uint64_t key_of(const struct entry *e)
{
	uint32_t bits;

	memcpy(&bits, &e->value, sizeof(bits));
	return bits & INT32_MAX;
}

enum { DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS };

/* The k-th largest key, digit by digit, and how many are larger. */
static uint64_t kth_key(const struct entry *list, size_t n, size_t k, size_t *above)
{
	size_t *how_many = gf_xcalloc(DIGITS, sizeof(*how_many)), i;
	uint64_t found = 0, digit;

	*above = 0;
	for (int shift = DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
		memset(how_many, 0, DIGITS * sizeof(*how_many));
		for (i = 0; i < n; i++)
			if (key_of(&list[i]) >> (shift + DIGIT_BITS) ==
			    found >> (shift + DIGIT_BITS))
				how_many[key_of(&list[i]) >> shift & (DIGITS - 1)]++;
		for (digit = DIGITS - 1; *above + how_many[digit] < k; digit--)
			*above += how_many[digit];
		found |= digit << shift;
	}
	free(how_many);
	return found;
}

/* Keeps the k largest, ties to the lower index, in order. */
static void keep_largest(struct entry *list, size_t n, size_t k)
{
	size_t above, ties, kept = 0, i;
	uint64_t least = kth_key(list, n, k, &above);

	for (i = 0, ties = k - above; i < n; i++) {
		if (key_of(&list[i]) < least || (key_of(&list[i]) == least && ties == 0))
			continue;
		ties -= key_of(&list[i]) == least;
		list[kept++] = list[i];
	}
}

/* What a receiver decodes. */
static void encode(const struct gf_contest_sparse *s, struct entry *set)
{
	const struct gf_codec *codec = s->config.codec;
	size_t count = s->config.count_elems, i;
	GF_FREED uint32_t *index = NULL;
	GF_FREED float *value = NULL;
	GF_FREED void *wire = NULL;

	if (!codec)
		return;
	index = gf_xcalloc(s->k, sizeof(*index));
	value = gf_xcalloc(s->k, sizeof(*value));
	wire = gf_xcalloc(1, gf_codec_set_bytes(codec, count, s->k));
	for (i = 0; i < s->k; i++) {
		index[i] = (uint32_t)set[i].index;
		value[i] = set[i].value;
	}
	gf_codec_write_set(codec, count, wire, index, value, s->k);
	for (i = 0; i < s->k; i++)
		set[i].value = value[i];
}

/* A rank's selection, k entries. */
static void select_of(const struct gf_contest_sparse *s, const struct gf_exact *x, int rank,
		      struct entry *out)
{
	size_t n = s->config.count_elems, i;
	GF_FREED float *inputs = gf_xcalloc(n, sizeof(*inputs));
	GF_FREED struct entry *all = gf_xcalloc(n, sizeof(*all));

	gf_exact_fill(x, rank, inputs, n);
	for (i = 0; i < n; i++)
		all[i] = (struct entry){i, inputs[i]};
	keep_largest(all, n, s->k);
	memcpy(out, all, s->k * sizeof(*out));
	encode(s, out);
}

/* a becomes the k largest of a + b; room for both is at `work`. */
static void merge(struct entry *a, const struct entry *b, size_t k, struct entry *work)
{
	size_t i = 0, j = 0, n = 0;

	while (i < k || j < k) {
		if (j == k || (i < k && a[i].index < b[j].index))
			work[n++] = a[i++];
		else if (i == k || b[j].index < a[i].index)
			work[n++] = b[j++];
		else {
			work[n] = a[i++];
			work[n++].value += b[j++].value;
		}
	}
	keep_largest(work, n, k);
	memcpy(a, work, k * sizeof(*a));
}

/* collectives/algorithms/gtopk.c's tree. */
static void merge_tree(const struct gf_contest_sparse *s, struct entry *sets)
{
	GF_FREED struct entry *work = gf_xcalloc(2 * s->k, sizeof(*work));
	int d, r, p = s->config.comm->ranks;

	for (d = 1; d < p; d *= 2)
		for (r = 0; r + d < p; r += 2 * d) {
			merge(sets + (size_t)r * s->k, sets + (size_t)(r + d) * s->k, s->k, work);
			encode(s, sets + (size_t)r * s->k);
		}
}

size_t gf_contest_sparse_wrong(const struct gf_contest_sparse *s, const struct gf_exact *x,
			       const float *data)
{
	size_t n = s->config.count_elems, k = s->k, wrong = 0, i;
	int p = s->config.comm->ranks, r;
	GF_FREED struct entry *sets = gf_xcalloc((size_t)p * k, sizeof(*sets));
	GF_FREED float *want = gf_xcalloc(n, sizeof(*want));

	for (r = 0; r < p; r++)
		select_of(s, x, r, sets + (size_t)r * k);
	if (s->merges) {
		merge_tree(s, sets);
		p = 1;
	}
	for (i = 0; i < (size_t)p * k; i++)
		want[sets[i].index] += sets[i].value;
	for (i = 0; i < n; i++)
		wrong += !(data[i] == want[i]);
	return wrong;
}
