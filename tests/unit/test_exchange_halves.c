/* SPDX-License-Identifier: BSD-3-Clause */
/* Halves that a program moves one by one: what comes, of every algorithm that has them, by codecs,
 * types and owners; and what is refused. */
#include "caller.h"
#include "layouts.h"
#include "entry_facts.h"
#include "test.h"

#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "collectives/algorithm.h"

#define UNITS  2
#define ROUNDS 3

struct halves_case {
	const char *algorithm, *codec;
	enum gf_dtype dtype;
	size_t layout; /* of layouts[]; 0: none is given */
};

static const struct gradflow_tensor units[UNITS] = {{"u", 1, {700}}, {"v", 1, {24}}};

static struct gradflow_exchange *open_halves(struct gf_comm *comm, const char *plan, int want,
					     const char *text)
{
	struct gradflow_exchange_options o = {.size = sizeof(o),
					      .former = -1,
					      .plan_text = plan,
					      .halves = 1,
					      .timeout_s = TEST_PATIENCE_S};
	struct gradflow_exchange *x;
	struct gf_error err = {""};
	int rc = gf_embed_exchange_open(comm, units, UNITS, &o, NULL, &x, &err);

	EXPECT(rc == want && (!rc || strstr(err.text, text)), "want %d \"%s\", got %d: %s", want,
	       text, rc, err.text);
	return x;
}

static float value(int rank, size_t i, size_t round)
{
	return (float)((int)((i * 7 + (size_t)rank * 5 + round) % 33) - 16);
}

static void put(enum gf_dtype dtype, void *data, const float *values, size_t n)
{
	if (dtype == GF_F32)
		memcpy(data, values, n * sizeof(*values));
	else
		caller_codec(dtype)->encode(data, values, n, 0);
}

static void get(enum gf_dtype dtype, float *values, const void *data, size_t n)
{
	if (dtype == GF_F32)
		memcpy(values, data, n * sizeof(*values));
	else
		caller_codec(dtype)->decode(values, data, n, 0);
}

static int owner_of(const struct gf_layout *l, size_t i)
{
	size_t k;

	for (k = 0; k < l->npieces; k++)
		if (i >= l->pieces[k].first && i < l->pieces[k].first + l->pieces[k].count)
			return l->pieces[k].rank;
	return -1;
}

/* Values are whole numbers of a few bits: exact in every type; a codec that rounds is off by its
 * own error. */
static void check_part(const struct halves_case *k, const struct gf_layout *l, int rank, int ranks,
		       size_t round, const float *found, size_t n, double divisor)
{
	const double error = gf_codec_find(k->codec)->error * 16 * ranks * ranks / divisor;
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		double sum = 0;

		for (r = 0; r < ranks; r++)
			sum += value(r, i, round);
		sum /= divisor;
		if (owner_of(l, i) == rank && fabs(found[i] - sum) > error + fabs(sum) / 128)
			EXPECT(0, "%s %s, %d ranks: element %zu: want %g, got %g", k->algorithm,
			       k->codec, ranks, i, sum, found[i]);
	}
}

/* All ranks have the same bits, the owner too, and near what the owner had. */
static void check_gathered(struct gf_comm *other, const struct halves_case *k, const void *data,
			   size_t bytes, const float *found, size_t n, size_t round)
{
	char *all = gf_xmalloc(bytes * (size_t)other->ranks);
	const double error = gf_codec_find(k->codec)->error * 16;
	struct gf_error err;
	size_t i;
	int r;

	EXPECT(gf_comm_allgather(other, data, bytes, all, &err) == 0, "%s", err.text);
	for (r = 1; r < other->ranks; r++)
		EXPECT(!memcmp(all, all + bytes * (size_t)r, bytes),
		       "%s %s: rank %d has other bits than rank 0", k->algorithm, k->codec, r);
	for (i = 0; i < n; i++)
		if (fabs(found[i] - value(0, i, round)) > error)
			EXPECT(0, "%s %s: element %zu: want %g, got %g", k->algorithm, k->codec, i,
			       value(0, i, round), found[i]);
	free(all);
}

static struct gf_layout owners_of(const struct halves_case *k, int ranks, size_t n)
{
	return k->layout ? layout_of(layouts[k->layout - 1].write, ranks, n)
			 : gf_layout_even(ranks, n);
}

static void begin(struct gradflow_exchange *x, const struct halves_case *k, bool gathers,
		  struct gradflow_half *h, const struct gf_layout *l, uint64_t *number)
{
	struct gradflow_piece *pieces = gf_xcalloc(l->npieces, sizeof(*pieces));
	size_t i;
	int rc;

	for (h->dtype = 0; *gf_embed_dtype(h->dtype) != k->dtype;)
		h->dtype++;
	for (i = 0; i < l->npieces; i++)
		pieces[i] = (struct gradflow_piece){l->pieces[i].rank, l->pieces[i].first,
						    l->pieces[i].count};
	h->owners = k->layout ? pieces : NULL;
	h->nowners = k->layout ? l->npieces : 0;
	rc = gathers ? gradflow_all_gather(x, h, number) : gradflow_reduce_scatter(x, h, number);
	EXPECT(rc == 0, "%s", gradflow_error());
	free(pieces);
}

static double divisor_of(size_t round)
{
	return round == 1 ? 2 : 0;
}

static void move(struct caller_rank *r)
{
	const struct halves_case *k = r->c;
	char *plan = gf_xasprintf(RULE("4096", "2", "%s", "%s", DENSE), k->algorithm, k->codec);
	struct gradflow_exchange *x = open_halves(r->comm[0], plan, 0, "");
	float values[700], found[700];
	double memory[2 * ROUNDS][350];
	uint64_t numbers[2 * ROUNDS];
	size_t round, i, n;

	for (round = 0; x && round < ROUNDS; round++) {
		struct gradflow_half h = {.tensor = round % UNITS, .divisor = divisor_of(round)};
		struct gf_layout l = owners_of(k, r->ranks, n = units[h.tensor].shape[0]);

		h.count = n;
		for (i = 0; i < n; i++)
			values[i] = value(r->rank, i, round);
		h.data = memory[2 * round];
		put(k->dtype, h.data, values, n);
		begin(x, k, false, &h, &l, &numbers[2 * round]);
		for (i = 0; i < n; i++)
			values[i] = owner_of(&l, i) == r->rank ? value(0, i, round) : -99;
		h.data = memory[2 * round + 1];
		put(k->dtype, h.data, values, n);
		begin(x, k, true, &h, &l, &numbers[2 * round + 1]);
		free((void *)l.pieces);
	}
	for (round = 0; x && round < ROUNDS; round++) {
		struct gf_layout l = owners_of(k, r->ranks, n = units[round % UNITS].shape[0]);

		EXPECT(numbers[2 * round] == 2 * round + 1, "got number %zu",
		       (size_t)numbers[2 * round]);
		EXPECT(gradflow_exchange_wait_half(x, numbers[2 * round + 1]) == 0, "%s",
		       gradflow_error());
		get(k->dtype, found, memory[2 * round], n);
		check_part(k, &l, r->rank, r->ranks, round, found, n,
			   divisor_of(round) > 0 ? divisor_of(round) : r->ranks);
		get(k->dtype, found, memory[2 * round + 1], n);
		check_gathered(r->comm[1], k, memory[2 * round + 1], n * gf_dtype_bytes(k->dtype),
			       found, n, round);
		free((void *)l.pieces);
	}
	gradflow_exchange_close(x);
	free(plan);
}

/* More than are under way at once, and none waited for: closing does. */
static void many(struct caller_rank *r)
{
	struct gradflow_exchange *x = open_halves(r->comm[0], NULL, 0, "");
	float data[40][24] = {{0}};
	uint64_t number = 0;
	size_t i;

	for (i = 0; x && i < GF_ARRAY_LENGTH(data); i++) {
		const struct gradflow_half h = {.tensor = 1, .data = data[i], .count = 24};

		data[i][0] = (float)i;
		EXPECT(gradflow_reduce_scatter(x, &h, &number) == 0, "%s", gradflow_error());
	}
	gradflow_exchange_close(x);
	for (i = 0; i < GF_ARRAY_LENGTH(data); i++)
		EXPECT(r->rank || data[i][0] == (float)i, "element of half %zu: got %g", i,
		       data[i][0]);
}

static void refused(int rc, int want, const char *text)
{
	EXPECT(rc == want && strstr(gradflow_error(), text), "want %d and \"%s\", got %d: %s", want,
	       text, rc, gradflow_error());
}

static void misused(struct caller_rank *r)
{
	const struct gradflow_piece gap = {0, 1, 23};
	struct gradflow_exchange *x = open_halves(r->comm[0], NULL, 0, "");
	double data[24] = {0};
	struct gradflow_half h = {.tensor = 1, .data = data, .count = 24};
	struct gradflow_gradient g = {1, data, 24, GRADFLOW_F32};
	uint64_t number;

	refused(gradflow_exchange_post(x, &g, 1), -EINVAL, "want an exchange of steps");
	refused(gradflow_exchange_flush(x), -EINVAL, "want an exchange of steps");
	refused(gradflow_exchange_drop(x), -EINVAL, "want an exchange of steps");
	refused(gradflow_exchange_test(x, GRADFLOW_ALL), -EINVAL, "want an exchange of steps");
	refused(gradflow_exchange_wait(x, GRADFLOW_ALL), -EINVAL, "want an exchange of steps");
	refused(gradflow_all_gather(x, NULL, &number), -EINVAL, "want a half");
	refused(gradflow_all_gather(x, &h, NULL), -EINVAL, "want a half");
	h.tensor = 2;
	refused(gradflow_all_gather(x, &h, &number), -EINVAL, "want a tensor below 2, got 2");
	h.tensor = 1;
	h.dtype = GRADFLOW_F64;
	refused(gradflow_all_gather(x, &h, &number), -EINVAL, "want f32, f16 or bf16, got f64");
	h.dtype = GRADFLOW_F32;
	h.data = (char *)data + 2;
	refused(gradflow_reduce_scatter(x, &h, &number), -EINVAL, "at a multiple of 4 bytes");
	h.data = data;
	h.owners = &gap;
	refused(gradflow_reduce_scatter(x, &h, &number), -EINVAL, "want owners and nowners");
	h.nowners = 1;
	refused(gradflow_reduce_scatter(x, &h, &number), -EINVAL, "tensor 1 (v)");
	h.owners = NULL;
	h.nowners = 0;
	h.divisor = INFINITY;
	refused(gradflow_reduce_scatter(x, &h, &number), -EINVAL, "divisor: want a number");
	h.divisor = 0;
	EXPECT(gradflow_reduce_scatter(x, &h, &number) == 0 && number == 1, "%s", gradflow_error());
	gradflow_exchange_close(x);
}

static void of_steps(struct caller_rank *r)
{
	static const enum gf_dtype f32[CALLER_TENSORS] = {GF_F32, GF_F32, GF_F32, GF_F32, GF_F32};
	struct gradflow_half h = {.count = 60};
	struct gf_error err;
	struct caller c;
	uint64_t number;

	if (caller_open(&c, r->comm[0], NULL, f32, FLAT, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	h.data = c.data[0];
	refused(gradflow_all_gather(c.x, &h, &number), -EINVAL, "opened with halves");
	refused(gradflow_exchange_wait_half(c.x, 1), -EINVAL, "opened with halves");
	caller_close(&c);
}

/* Such a plan has no halves. */
static void impossible(struct caller_rank *r)
{
	(void)open_halves(r->comm[0], r->c, -ENOTSUP, "halves: want");
}

int main(void)
{
	static const enum gf_dtype dtypes[] = {GF_F32, GF_F16, GF_BF16};
	static const char *const codecs[] = {"f32", "bf16", "q8"};
	const char *none = NULL;
	const struct gf_algorithm *a;
	struct halves_case k;
	size_t i, c, d, n = 0;
	int ranks;

	watchdog(120);
	for (i = 0; (a = gf_algorithms[i]); i++) {
		if (a->build && !(a->traits & GF_ALGORITHM_HALVES) && !none)
			none = entry_keep(
				gf_xasprintf(RULE("4096", "1", "%s", "f32", DENSE), a->name));
		for (c = 0;
		     a->build && a->traits & GF_ALGORITHM_HALVES && c < GF_ARRAY_LENGTH(codecs);
		     c++)
			for (d = 0; d < GF_ARRAY_LENGTH(dtypes); d++)
				for (ranks = 1; ranks <= 4; ranks++, n++) {
					k = (struct halves_case){
						a->name, codecs[c], dtypes[d],
						n % (GF_ARRAY_LENGTH(layouts) + 1)};
					on_callers(ranks, move, &k);
				}
	}
	EXPECT(n && none, "no algorithm has halves, or all have");
	on_callers(3, impossible, none);
	on_callers(3, many, NULL);
	on_callers(2, misused, NULL);
	on_callers(2, of_steps, NULL);
	return TEST_END();
}
