/* SPDX-License-Identifier: BSD-3-Clause */
#include "compressors/sets.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/codecs/encode.h"
#include "gf_kernels.h"

#define ENTRY_BYTES (sizeof(uint32_t) + sizeof(float))

static bool coded(const struct gf_sparse_message *m)
{
	return m->codec && !m->codec->plain;
}

size_t gf_sparse_set_bytes(const struct gf_sparse_message *m, size_t k)
{
	return coded(m) ? gf_codec_set_bytes(m->codec, m->count_elems, k) : k * ENTRY_BYTES;
}

bool gf_sparse_gathers(const struct gf_sparse_message *m)
{
	return !m->merges || m->putback == GF_PUTBACK_NAIVE;
}

void gf_sparse_goes(const struct gf_sparse_message *m, struct gf_work *w)
{
	const bool gathers = gf_sparse_gathers(m);

	w->sparse = gf_sparse_find(gf_wire_algorithm(gathers ? GF_WIRE_GATHER : GF_WIRE_MERGE));
	w->half = gathers ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE;
	w->count_elems = gathers ? (size_t)m->ranks : 1;
}

size_t gf_sparse_sets_bytes(const struct gf_sparse_message *m, size_t k)
{
	return gf_sparse_set_bytes(m, k) * (gf_sparse_gathers(m) ? (size_t)m->ranks : 1);
}

/* The set at that place, as the kernels see it. */
static struct gf_sparse set_at(const struct gf_sparse_message *m, void *sets, size_t place)
{
	char *at = (char *)sets + place * m->k * ENTRY_BYTES;

	return (struct gf_sparse){
		.index = (uint32_t *)at,
		.value = (float *)(at + m->k * sizeof(uint32_t)),
		.count = m->k,
	};
}

/* All sets as the kernels see them: as they travel, or decoded. */
static void *plain_sets(const struct gf_sparse_message *m)
{
	return coded(m) ? m->plain : m->sets;
}

/* A rank's set where it travels from. */
static void *wire_at(const struct gf_sparse_message *m, size_t place)
{
	return (char *)m->sets + place * gf_sparse_set_bytes(m, m->k);
}

/* The most values in gtopk's union of sets. */
static size_t union_room(const struct gf_sparse_message *m, size_t most_k)
{
	return most_k * (gf_sparse_gathers(m) ? (size_t)m->ranks : 2);
}

size_t gf_sparse_scratch_elems(const struct gf_sparse_message *m, size_t most_k)
{
	size_t room = union_room(m, most_k);

	return 2 * (room < m->count_elems ? m->count_elems : room);
}

static void init_coded(struct gf_sparse_message *m, size_t most_k)
{
	size_t sets = gf_sparse_gathers(m) ? (size_t)m->ranks : 2, lost = 0;

	while (!gf_sparse_gathers(m) && ((size_t)1 << lost) < (size_t)m->ranks)
		lost++;
	m->plain = gf_xcalloc(sets * most_k, ENTRY_BYTES);
	m->before = gf_xcalloc(most_k, sizeof(*m->before));
	m->lost = gf_xcalloc(lost * most_k + 1, sizeof(*m->lost));
	m->lost_value = gf_xcalloc(lost * most_k + 1, sizeof(*m->lost_value));
}

int gf_sparse_init(struct gf_sparse_message *m, size_t most_k, struct gf_error *err)
{
	size_t room = union_room(m, most_k);

	if (m->count_elems > UINT32_MAX)
		return gf_error_set(err, -EINVAL,
				    "want at most %u elements in a message that goes as values "
				    "with indices, got %zu",
				    UINT32_MAX, m->count_elems);
	m->sent = gf_xcalloc(most_k, sizeof(*m->sent));
	m->sent_value = gf_xcalloc(most_k, sizeof(*m->sent_value));
	if (coded(m))
		init_coded(m, most_k);
	if (!m->merges)
		return 0;
	m->index = gf_xcalloc(room, sizeof(*m->index));
	m->value = gf_xcalloc(room, sizeof(*m->value));
	m->merged = gf_xcalloc(room, sizeof(*m->merged));
	m->merged_value = gf_xcalloc(room, sizeof(*m->merged_value));
	return 0;
}

void gf_sparse_release(struct gf_sparse_message *m)
{
	free(m->sent);
	free(m->sent_value);
	free(m->index);
	free(m->value);
	free(m->merged);
	free(m->merged_value);
	free(m->plain);
	free(m->before);
	free(m->lost);
	free(m->lost_value);
	memset(m, 0, sizeof(*m));
}

size_t gf_sparse_own_place(const struct gf_sparse_message *m, int rank)
{
	return gf_sparse_gathers(m) ? (size_t)rank : 0;
}

/* What is finite stays so under a codec whose greatest value is less: the codec loses the rest. */
static void saturate(const struct gf_sparse_message *m, float *value)
{
	const float most = (float)m->codec->greatest;

	for (size_t i = 0; most > 0 && i < m->k; i++)
		if (isfinite(value[i]))
			value[i] = fminf(fmaxf(value[i], -most), most);
}

/* Encodes a set of k; `before` becomes what the codec loses of its values. */
static void encode(struct gf_sparse_message *m, void *wire, const uint32_t *index, float *value)
{
	memcpy(m->before, value, m->k * sizeof(*value));
	saturate(m, value);
	gf_codec_write_set(m->codec, m->count_elems, wire, index, value, m->k);
	for (size_t i = 0; i < m->k; i++)
		m->before[i] -= value[i];
}

void gf_sparse_select(struct gf_sparse_message *m, size_t k, int rank)
{
	struct gf_topk top = {
		.values = m->data,
		.add = m->residual,
		.count = m->count_elems,
		.k = k,
		.index = m->sent,
		.scratch = m->scratch,
	};
	struct gf_sparse own;

	assert(k >= 1 && k <= m->count_elems);
	m->k = k;
	gf_kernels()->topk_f32(&top);
	gf_kernels()->take_f32(m->sent_value, m->data, m->sent, k);
	if (coded(m)) {
		m->nlost = 0;
		m->damaged = false;
		encode(m, wire_at(m, gf_sparse_own_place(m, rank)), m->sent, m->sent_value);
		gf_kernels()->scatter_add_f32(m->data, m->before, m->sent, m->k);
		return;
	}
	own = set_at(m, m->sets, gf_sparse_own_place(m, rank));
	memcpy(own.index, m->sent, k * sizeof(*own.index));
	memcpy(own.value, m->sent_value, k * sizeof(*own.value));
}

/* --- sums of sets ---------------------------------------------------------
 */

/* The k largest of the merged set, `count` long, into kept; what is left goes back if that is
 * wanted. */
static void keep_largest(struct gf_sparse_message *m, size_t count, struct gf_sparse *kept,
			 bool returns)
{
	const struct gf_sparse merged = {m->merged, m->merged_value, count};
	struct gf_topk top = {
		.values = m->merged_value,
		.count = count,
		.k = m->k,
		.index = m->index,
		.scratch = m->scratch,
	};

	gf_kernels()->topk_f32(&top);
	gf_kernels()->move_f32(&merged, m->index, m->k, kept);
	if (!returns)
		return;
	for (size_t i = 0; i < count; i++)
		if (m->merged[i] != GF_NO_INDEX)
			m->data[m->merged[i]] += m->merged_value[i];
}

static bool decode(struct gf_sparse_message *m, const void *wire, struct gf_sparse *set)
{
	if (!gf_codec_read_set(m->codec, m->count_elems, wire, set->index, set->value, m->k))
		m->damaged = true;
	return !m->damaged;
}

static void encode_merged(struct gf_sparse_message *m, void *wire, struct gf_sparse *set)
{
	const size_t at = m->nlost * m->k;

	encode(m, wire, set->index, set->value);
	if (m->putback == GF_PUTBACK_CONSERVE) {
		gf_kernels()->scatter_add_f32(m->data, m->before, set->index, m->k);
		return;
	}
	memcpy(m->lost + at, set->index, m->k * sizeof(*m->lost));
	memcpy(m->lost_value + at, m->before, m->k * sizeof(*m->lost_value));
	m->nlost++;
}

void gf_sparse_merge(void *message, void *to, const void *from, size_t count)
{
	struct gf_sparse_message *m = message;
	struct gf_sparse merged = {m->merged, m->merged_value, 0};
	struct gf_sparse a = set_at(m, coded(m) ? m->plain : to, 0);
	struct gf_sparse b =
		coded(m) ? set_at(m, m->plain, 1) : set_at(m, (void *)(uintptr_t)from, 0);

	assert(count == 1);
	(void)count;
	if (coded(m) && (!decode(m, to, &a) || !decode(m, from, &b)))
		return;
	gf_kernels()->merge_f32(&a, &b, &merged);
	keep_largest(m, merged.count, &a, m->putback == GF_PUTBACK_CONSERVE);
	if (coded(m))
		encode_merged(m, to, &a);
}

/* The sum of all ranks' sets, in rank order, so that all get the same bits, into `merged`. */
static size_t add_up(struct gf_sparse_message *m)
{
	struct gf_sparse sum = {m->index, m->value, 0};
	struct gf_sparse out = {m->merged, m->merged_value, 0}, swap;

	for (int r = 0; r < m->ranks; r++) {
		struct gf_sparse set = set_at(m, plain_sets(m), (size_t)r);

		gf_kernels()->merge_f32(&sum, &set, &out);
		swap = sum;
		sum = out;
		out = swap;
	}
	if (sum.index == m->index) {
		memcpy(m->merged, m->index, sum.count * sizeof(*m->index));
		memcpy(m->merged_value, m->value, sum.count * sizeof(*m->value));
	}
	return sum.count;
}

/* Puts back the values that this rank sent but that are not in the result. Both lists ascend. */
static void put_back(struct gf_sparse_message *m)
{
	size_t i, r = 0;

	for (i = 0; i < m->k; i++) {
		while (r < m->nresult && m->index[r] < m->sent[i])
			r++;
		if (r == m->nresult || m->index[r] != m->sent[i])
			m->data[m->sent[i]] += m->sent_value[i];
	}
}

/* Returns to data what this rank's merges lost of values in the result. */
static void return_lost(struct gf_sparse_message *m)
{
	size_t list, i, r;

	for (list = 0; list < m->nlost; list++) {
		const uint32_t *index = m->lost + list * m->k;
		const float *value = m->lost_value + list * m->k;

		for (i = r = 0; i < m->k; i++) {
			while (r < m->nresult && m->index[r] < index[i])
				r++;
			if (r < m->nresult && m->index[r] == index[i])
				m->data[index[i]] += value[i];
		}
	}
}

void gf_sparse_conclude(struct gf_sparse_message *m)
{
	const size_t coming = !coded(m) ? 0 : gf_sparse_gathers(m) ? (size_t)m->ranks : 1;
	struct gf_sparse result;

	for (size_t i = 0; i < coming && !m->damaged; i++) {
		struct gf_sparse set = set_at(m, m->plain, i);

		decode(m, wire_at(m, i), &set);
	}
	if (!m->merges || m->damaged)
		return;
	result = set_at(m, plain_sets(m), 0);
	if (gf_sparse_gathers(m))
		keep_largest(m, add_up(m), &result, false);
	memcpy(m->index, result.index, m->k * sizeof(*m->index));
	memcpy(m->value, result.value, m->k * sizeof(*m->value));
	m->nresult = m->k;
	if (m->putback != GF_PUTBACK_CONSERVE)
		put_back(m);
	return_lost(m);
}

size_t gf_sparse_common(const struct gf_sparse_message *m)
{
	return m->merges ? 1 : (size_t)m->ranks;
}

size_t gf_sparse_bad(const struct gf_sparse_message *m)
{
	size_t least = m->count_elems, r, i;

	for (r = 0; r < gf_sparse_common(m); r++) {
		struct gf_sparse set = set_at(m, plain_sets(m), r);

		for (i = 0; i < set.count; i++)
			if (!isfinite(set.value[i]) && set.index[i] < least)
				least = set.index[i];
	}
	return least;
}

void gf_sparse_add(const struct gf_sparse_message *m, float *sum)
{
	for (size_t r = 0; r < gf_sparse_common(m); r++) {
		struct gf_sparse set = set_at(m, plain_sets(m), r);

		gf_kernels()->scatter_add_f32(sum, set.value, set.index, set.count);
	}
}
