/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor's results for messages that are not f32 sums: every type and operation, every codec,
 * sparse sets, the library's own, and halves; on threads, in shared memory, and under mpirun.
 */
#include <errno.h>
#include <stdint.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "runtime/exec/exec.h"
#include "transport/transport.h"
#include "profiler/contest/exact.h"
#include "gf_kernels.h"
#include "layouts.h"
#include "ranks.h"

/* Of a quotient rounded once in its type. */
static const double rounding[GF_DTYPES] = {
	[GF_F32] = 0x1p-23, [GF_F64] = 0x1p-52, [GF_F16] = 0x1p-10,
	[GF_BF16] = 0x1p-7, [GF_I32] = 0,
};
/* Of values printed with seven digits. */
static const double printed = 5e-7;

/* Exact in every type: bf16 counts to 256. */
static double value(enum gf_op op, int rank, size_t i)
{
	if (op == GF_OP_PROD)
		return rank % 5 == (int)(i % 5) ? 2 : 1;
	if (op == GF_OP_MAX || op == GF_OP_MIN)
		return (double)((i * 7 + (size_t)rank * 13) % 61) - 30;
	return (double)(rank % 3 + 1) * (double)(i % 5);
}

static double expected(enum gf_dtype dtype, enum gf_op op, int ranks, size_t i)
{
	double all = value(op, 0, i), x;
	int r;

	for (r = 1; r < ranks; r++) {
		x = value(op, r, i);
		switch (op) {
		case GF_OP_PROD:
			all *= x;
			break;
		case GF_OP_MAX:
			all = fmax(all, x);
			break;
		case GF_OP_MIN:
			all = fmin(all, x);
			break;
		default:
			all += x;
		}
	}
	if (op == GF_OP_AVG)
		all /= ranks;
	return dtype == GF_I32 ? trunc(all) : all;
}

/* A message: an algorithm (NULL: the library) over elements. */
struct message {
	const struct gf_algorithm *algorithm;
	struct gf_coll_args args;
	struct gf_element element;
	const char *what;
};

static void run_message(struct gf_comm *c, const struct message *m, void *data,
			uint64_t *wire_bytes)
{
	struct gf_exec *x = gf_exec_new(c);
	struct gf_schedule s = {0};
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	struct gf_coll_args args = m->args;
	const bool steps = m->algorithm->build || args.half != GF_COLL_WHOLE;
	int rc = 0;

	args.calls = !m->algorithm->build;
	if (steps)
		rc = gf_algorithm_schedule(m->algorithm, &args, c->rank, &s, &err);
	rc = rc ? rc
		: gf_exec_run_new(x,
				  &(struct gf_exec_config){.schedule = steps ? &s : NULL,
							   .count_elems = m->args.count_elems,
							   .element = m->element,
							   .half = m->args.half},
				  &run, &err);
	rc = rc ? rc : gf_exec_start(run, data, &err);
	rc = rc ? rc : gf_exec_wait(x, run, 0, &err);
	EXPECT(!rc, "%s: %s", m->what, err.text);
	if (!rc && wire_bytes)
		*wire_bytes = gf_exec_wire_bytes(run);
	/* numbers as they are take no clock; one rank may have no hop */
	if (!m->element.codec && m->element.number)
		EXPECT(gf_exec_coding_s(x) == 0, "%s: coding", m->what);
	else if (m->element.codec && c->rank < m->args.ranks && c->ranks > 1)
		EXPECT(gf_exec_coding_s(x) > 0, "%s: no coding", m->what);
	gf_exec_run_free(run);
	gf_exec_free(x);
	gf_schedule_release(&s);
}

static void expect_same_bits(struct gf_comm *c, const void *data, size_t size, const char *what)
{
	char *all = gf_xmalloc(size * (size_t)c->ranks + 1);
	struct gf_error err = {""};

	EXPECT(!gf_comm_allgather(c, data, size, all, &err), "%s", err.text);
	EXPECT(!memcmp(all, all + (size_t)c->rank * size, size), "%s: ranks 0 and %d differ", what,
	       c->rank);
	free(all);
}

static void *buffer(struct gf_comm *c, size_t size_bytes)
{
	struct gf_error err = {""};
	void *data = NULL;

	if (c->ops->buffer_alloc(c, size_bytes, &data, &err)) {
		printf("%s\n", err.text);
		exit(1);
	}
	return data;
}

/* --- types and operations ------------------------------------------------ */

static void check_numbers(struct gf_comm *c, struct message *m, enum gf_dtype dtype, enum gf_op op)
{
	size_t n = m->args.count_elems, i, size = n * gf_dtype_bytes(dtype);
	void *data = buffer(c, size + 1);
	double want, got;
	char what[128];

	snprintf(what, sizeof(what), "%s, %s of %s, p = %d, n = %zu", m->algorithm->name,
		 gf_op_names[op], gf_dtype_names[dtype], c->ranks, n);
	m->what = what;
	m->element = gf_element_number(dtype, op);
	m->args.elem_bytes = m->element.size_bytes;
	for (i = 0; i < n; i++)
		gf_exact_store(dtype, data, i, value(op, c->rank, i));
	((char *)data)[size] = 77;
	run_message(c, m, data, NULL);
	for (i = 0; i < n; i++) {
		want = expected(dtype, op, c->ranks, i);
		got = gf_exact_load(dtype, data, i);
		if (fabs(got - want) <= (op == GF_OP_AVG ? rounding[dtype] * fabs(want) : 0))
			continue;
		EXPECT(0, "%s, rank %d, [%zu]: want %.17g, got %.17g", what, c->rank, i, want, got);
		break;
	}
	EXPECT(((char *)data)[size] == 77, "%s: beyond the end", what);
	expect_same_bits(c, data, size, what);
	c->ops->buffer_free(c, data);
}

/* A fifth of the pairs for each number of ranks, another for the next. */
static void numbers(struct gf_comm *c, void *ctx)
{
	static const size_t sizes[] = {37, 5003};
	size_t a, n;
	int dtype, op;

	(void)ctx;
	for (a = 0; gf_algorithms[a]; a++)
		for (dtype = 0; dtype < GF_DTYPES; dtype++)
			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
				struct message m = {
					.algorithm = gf_algorithms[a],
					.args = {.ranks = c->ranks, .count_elems = sizes[n]}};

				op = (dtype + c->ranks + (int)a) % GF_OPS;
				if (!test_tries(a + (size_t)dtype + n, 6))
					continue;
				check_numbers(c, &m, (enum gf_dtype)dtype, (enum gf_op)op);
			}
}

/* --- codecs -------------------------------------------------------------- */

static float coded_value(int rank, size_t i)
{
	return (float)((i * 7 + (size_t)rank * 13) % 97) / 97;
}

/* How often a contribution may be encoded on its way into a result: once per hop. */
static int hops(const struct gf_algorithm *a, int ranks)
{
	int log2 = 0;

	while (1 << log2 < ranks)
		log2++;
	if (!strcmp(a->name, "ring") || !strcmp(a->name, "hierarchical") ||
	    !strcmp(a->name, "blueconnect"))
		return ranks + 2 * log2;
	return 2 * log2 + 2;
}

/* Contributions are positive, so that no partial sum is above the sum, nor its block's largest
 * above the block's: each encoding errs by codec->error of that at most. */
static void check_codec(struct gf_comm *c, struct message *m, const char *codec)
{
	size_t n = m->args.count_elems, i;
	float *data = buffer(c, (n + 1) * sizeof(*data));
	struct gf_error err = {""};
	double sum, largest = 0, bound;
	char what[128];
	int r;

	snprintf(what, sizeof(what), "%s, %s, p = %d, n = %zu, segments of %zu", m->algorithm->name,
		 codec, c->ranks, n, m->args.segment_elems);
	m->what = what;
	EXPECT(!gf_element_coded(codec, GF_OP_SUM, &m->element, &err), "%s", err.text);
	m->args.elem_bytes = sizeof(float);
	m->args.lossy = gf_element_lossy(&m->element);
	for (i = 0; i < n; i++) {
		data[i] = coded_value(c->rank, i);
		for (r = 0, sum = 0; r < c->ranks; r++)
			sum += (double)coded_value(r, i);
		largest = fmax(largest, sum);
	}
	bound = largest * (pow(1 + gf_codec_find(codec)->error, hops(m->algorithm, c->ranks)) - 1 +
			   c->ranks * 0x1p-23);
	run_message(c, m, data, NULL);
	for (i = 0; i < n; i++) {
		for (r = 0, sum = 0; r < c->ranks; r++)
			sum += (double)coded_value(r, i);
		if (fabs((double)data[i] - sum) <= bound)
			continue;
		EXPECT(0, "%s, rank %d, [%zu]: want %g, got %g, bound %g", what, c->rank, i, sum,
		       (double)data[i], bound);
		break;
	}
	expect_same_bits(c, data, n * sizeof(*data), what);
	c->ops->buffer_free(c, data);
}

static void codecs(struct gf_comm *c, void *ctx)
{
	static const struct {
		size_t count, segment;
	} sizes[] = {{37, 0}, {9001, 0}, {2600, 521}};
	size_t a, k, n;

	(void)ctx;
	for (a = 0; gf_algorithms[a]; a++)
		for (k = 1; gf_codecs[k].name; k++)
			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
				struct message m = {.algorithm = gf_algorithms[a],
						    .args = {.ranks = c->ranks,
							     .count_elems = sizes[n].count,
							     .segment_elems = sizes[n].segment}};

				if (test_tries(a + k + n, 6) &&
				    (gf_algorithms[a]->build || gf_codecs[k].adds))
					check_codec(c, &m, gf_codecs[k].name);
			}
}

/* tests/data/vectors.md: [1,2,3,4] + [.1,.2,.3,.4] on two ranks. */
static void vectors(struct gf_comm *c, void *ctx)
{
	static const struct {
		const char *codec;
		float want[4];
		uint64_t wire_bytes; /* two parts of two elements */
	} cases[] = {
		{"trunc16", {1.09375, 2.1875, 3.296875, 4.375}, 8},
		{"q8", {1.1086614, 2.2, 3.2913387, 4.4}, 12},
		{"f32", {1.1, 2.2, 3.3, 4.4}, 16},
		{"fp8", {1.125, 2.25, 3.25, 4.5}, 6},
		{"fp4", {1, 2, 3, 4}, 4},
	};
	static const float from[2][4] = {{1, 2, 3, 4}, {.1f, .2f, .3f, .4f}};
	uint64_t wire_bytes = 0;
	size_t i, k;

	(void)ctx;
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct message m = {.algorithm = gf_algorithm_find("ring"),
				    .args = {.ranks = 2, .count_elems = 4, .elem_bytes = 4},
				    .what = cases[i].codec};
		float data[4];

		memcpy(data, from[c->rank], sizeof(data));
		EXPECT(!gf_element_coded(cases[i].codec, GF_OP_SUM, &m.element, NULL), "%s",
		       cases[i].codec);
		m.args.lossy = gf_element_lossy(&m.element);
		run_message(c, &m, data, &wire_bytes);
		EXPECT(wire_bytes == cases[i].wire_bytes, "%s: %llu bytes", cases[i].codec,
		       (unsigned long long)wire_bytes);
		for (k = 0; k < 4; k++)
			EXPECT_NEAR((double)data[k], (double)cases[i].want[k], printed, "%s [%zu]",
				    cases[i].codec, k);
	}
}

/* --- sparse sets --------------------------------------------------------- */

#define K 2

struct set {
	uint32_t index[K];
	float value[K];
};

/* The K largest of the sum, ascending; counts how often it is called. */
static void merge(void *ctx, void *to, const void *from, size_t count)
{
	size_t *calls = ctx, n = 0, i, k;
	struct set a, b;
	struct {
		uint32_t index;
		float value;
	} all[2 * K], swap;

	EXPECT(count == 1, "%zu sets", count);
	memcpy(&a, to, sizeof(a));
	memcpy(&b, from, sizeof(b));
	for (i = 0; i < K; i++) {
		all[n].index = a.index[i];
		all[n++].value = a.value[i];
	}
	for (i = 0; i < K; i++) {
		for (k = 0; k < K && all[k].index != b.index[i]; k++)
			;
		if (k < K) {
			all[k].value += b.value[i];
			continue;
		}
		all[n].index = b.index[i];
		all[n++].value = b.value[i];
	}
	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++)
			if (all[k].value > all[i].value ||
			    (all[k].value == all[i].value && all[k].index < all[i].index)) {
				swap = all[i];
				all[i] = all[k];
				all[k] = swap;
			}
	for (i = 0; i < K; i++) {
		a.index[i] = all[i].index;
		a.value[i] = all[i].value;
	}
	memcpy(to, &a, sizeof(a));
	++*calls;
}

/* tests/data/vectors.md, gtopk: accumulators of four ranks, and of the first three. */
static const struct set accumulators[4] = {
	{{0, 6}, {9, 2}},
	{{1, 6}, {8, 2.5}},
	{{6, 7}, {9.5, 1}},
	{{6, 5}, {3, .5}},
};

static void gtopk(struct gf_comm *c, void *ctx)
{
	size_t calls = 0, most = 0;
	struct message m = {
		.algorithm = gf_sparse_find("gtopk"),
		.args = {.ranks = c->ranks, .count_elems = 1, .elem_bytes = sizeof(struct set)},
		.element = gf_element_set(sizeof(struct set), merge, &calls),
		.what = "gtopk",
	};
	struct set *own = buffer(c, sizeof(*own));
	float want = c->ranks == 3 ? 9.5f : 12.5f;
	int distance;

	(void)ctx;
	*own = accumulators[c->rank % 4];
	run_message(c, &m, own, NULL);
	for (distance = 1; c->rank % (2 * distance) == 0 && distance < c->ranks; distance *= 2)
		most += c->rank + distance < c->ranks;
	EXPECT(calls == most, "rank %d of %d: %zu merges, want %zu", c->rank, c->ranks, calls,
	       most);
	if (c->ranks == 3 || c->ranks == 4)
		EXPECT((own->index[0] == 6 && own->index[1] == 0 && own->value[0] == want &&
			own->value[1] == 9) ||
			       0,
		       "p = %d: %u:%g %u:%g", c->ranks, own->index[0], (double)own->value[0],
		       own->index[1], (double)own->value[1]);
	expect_same_bits(c, own, sizeof(*own), "gtopk");
	c->ops->buffer_free(c, own);
}

/* Every rank's set to every rank, in rank order; larger than what goes in one piece through shared
 * memory, and of an odd size. */
#define SLOT ((size_t)300001)

static void topk(struct gf_comm *c, void *ctx)
{
	struct message m = {
		.algorithm = gf_sparse_find("gather"),
		.args = {.ranks = c->ranks,
			 .count_elems = (size_t)c->ranks,
			 .elem_bytes = SLOT,
			 .half = GF_COLL_ALL_GATHER},
		.element = gf_element_set(SLOT, NULL, NULL),
		.what = "gather",
	};
	char *slots = buffer(c, SLOT * (size_t)c->ranks);
	size_t i;
	int r;

	(void)ctx;
	m.args.half = GF_COLL_ALL_GATHER;
	for (i = 0; i < SLOT; i++)
		slots[(size_t)c->rank * SLOT + i] = (char)(c->rank * 7 + (int)(i % 101));
	run_message(c, &m, slots, NULL);
	for (r = 0; r < c->ranks; r++)
		for (i = 0; i < SLOT; i++)
			if (slots[(size_t)r * SLOT + i] != (char)(r * 7 + (int)(i % 101))) {
				EXPECT(0, "p = %d, slot %d, byte %zu", c->ranks, r, i);
				break;
			}
	c->ops->buffer_free(c, slots);
}

/* A reduction of sets too long for a block of the shared-memory transport: it comes in whole
 * elements. */
static void add_bytes(void *ctx, void *to, const void *from, size_t count)
{
	const unsigned char *x = from;
	unsigned char *y = to;
	size_t i;

	(void)ctx;
	for (i = 0; i < count * SLOT; i++)
		y[i] = (unsigned char)(y[i] + x[i]);
}

static void long_sets(struct gf_comm *c, void *ctx)
{
	struct message m = {
		.algorithm = gf_algorithm_find("ring"),
		.args = {.ranks = c->ranks, .count_elems = 5, .elem_bytes = SLOT},
		.element = gf_element_set(SLOT, add_bytes, NULL),
		.what = "long sets",
	};
	unsigned char *sets = buffer(c, SLOT * 5);
	size_t i, wrong = 0;
	int r, want;

	(void)ctx;
	for (i = 0; i < 5 * SLOT; i++)
		sets[i] = (unsigned char)(i % 13 + (size_t)c->rank);
	run_message(c, &m, sets, NULL);
	for (i = 0; i < 5 * SLOT; i++) {
		for (r = 0, want = 0; r < c->ranks; r++)
			want += (int)(i % 13) + r;
		wrong += sets[i] != (unsigned char)want;
	}
	EXPECT(!wrong, "p = %d: %zu wrong", c->ranks, wrong);
	c->ops->buffer_free(c, sets);
}

/* --- halves -------------------------------------------------------------- */

/* Two runs over one buffer, with something else in between. */
static void check_halves(struct gf_comm *c, const struct gf_algorithm *a, const char *codec,
			 size_t n, const struct gf_layout *owners)
{
	float *data = buffer(c, (n + 1) * sizeof(*data));
	float *whole = buffer(c, (n + 1) * sizeof(*data));
	struct gf_error err = {""};
	struct message m = {
		.algorithm = a,
		.args = {.ranks = c->ranks, .count_elems = n, .elem_bytes = sizeof(float)},
		.what = a->name};
	size_t i;

	EXPECT(!gf_element_coded(codec, GF_OP_AVG, &m.element, &err), "%s", err.text);
	m.args.lossy = gf_element_lossy(&m.element);
	for (i = 0; i < n; i++)
		data[i] = whole[i] = coded_value(c->rank, i);
	run_message(c, &m, whole, NULL);
	m.args.owners = owners;
	m.args.half = GF_COLL_REDUCE_SCATTER;
	run_message(c, &m, data, NULL);
	m.args.half = GF_COLL_ALL_GATHER;
	run_message(c, &m, data, NULL);
	for (i = 0; i < n && owners && strcmp(codec, "f32") == 0; i++)
		if (fabsf(data[i] - whole[i]) > 1e-6F * fabsf(whole[i]))
			break;
	EXPECT(i == n || !owners || strcmp(codec, "f32") != 0,
	       "%s, p = %d, n = %zu, owners: [%zu] is %g, want %g", a->name, c->ranks, n, i,
	       (double)data[i], (double)whole[i]);
	if (strcmp(codec, "f32") == 0 && !owners)
		EXPECT(!memcmp(data, whole, n * sizeof(*data)),
		       "%s, p = %d, n = %zu: halves make no whole", a->name, c->ranks, n);
	expect_same_bits(c, data, n * sizeof(*data), a->name);
	c->ops->buffer_free(c, data);
	c->ops->buffer_free(c, whole);
}

/* Elements that a caller's layout gives to ranks, of whom some have none. */
static void check_owners(struct gf_comm *c, const struct gf_algorithm *a)
{
	static const char *const codecs[] = {"f32", "q8", "fp4"};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(layouts); i++) {
		struct gf_layout owners = layout_of(layouts[i].write, c->ranks, 5003);

		for (k = 0; k < GF_ARRAY_LENGTH(codecs); k++)
			check_halves(c, a, codecs[k], 5003, &owners);
		free((void *)owners.pieces);
	}
}

/* The transport's own halves: even parts in the order of ranks, and no others. */
static void check_library(struct gf_comm *c, const struct gf_algorithm *a)
{
	struct gf_layout even = layout_of(layout_even, c->ranks, 5003);
	struct gf_layout one = layout_of(layout_one, c->ranks, 5003);
	struct gf_coll_args args = {
		.ranks = c->ranks,
		.count_elems = 5003,
		.half = GF_COLL_ALL_GATHER,
		.owners = &one,
		.calls = true,
	};
	struct gf_schedule s;
	struct gf_error err = {""};

	check_halves(c, a, "f32", 5003, &even);
	if (c->ranks > 1)
		EXPECT(gf_algorithm_schedule(a, &args, c->rank, &s, &err) == -ENOTSUP,
		       "owners that are no even parts");
	free((void *)even.pieces);
	free((void *)one.pieces);
}

static void halves(struct gf_comm *c, void *ctx)
{
	size_t a;

	(void)ctx;
	for (a = 0; gf_algorithms[a]; a++) {
		if (!gf_algorithms[a]->build && c->ops->team)
			check_library(c, gf_algorithms[a]);
		if (!gf_algorithms[a]->owned)
			continue;
		check_halves(c, gf_algorithms[a], "f32", 1, NULL);
		check_halves(c, gf_algorithms[a], "f32", 5003, NULL);
		check_halves(c, gf_algorithms[a], "q8", 5003, NULL);
		check_halves(c, gf_algorithms[a], "fp4", 5003, NULL);
		check_owners(c, gf_algorithms[a]);
	}
}

/* --- segments ------------------------------------------------------------ */

static void segments(struct gf_comm *c, void *ctx)
{
	static const struct {
		const char *codec;
		size_t count_elems, want, shared;
	} cases[] = {
		{"f32", 0, 14336, 65536},
		/* 4 MiB on 4 ranks: a part in 19 segments, or 4; then in 5 */
		{"f32", 1 << 20, 13824, 65536},
		{"f32", (1 << 20) + 1, 13824, 52480},
		{"f16", 1 << 20, 26240, 131072},
		{"q8", 1 << 20, 52 * 1024, 128 * 1024},
		{"fp8", 1 << 20, 52480, 131072},
		{"fp4", 1 << 20, 87392, 493440},
		/* 4 GiB on 4 ranks: in at most 1024 pieces each */
		{"f32", (size_t)1 << 30, 1 << 18, 1 << 18},
	};
	const bool *shared = ctx;
	struct gf_comm few = *c;
	struct gf_element e;
	size_t i, got;

	/* 4 ranks send 6 rounds of a ring to one, which tells 2048 messages apart */
	few.matches = 2048;
	EXPECT(!gf_element_coded("f32", GF_OP_SUM, &e, NULL), "f32");
	got = gf_exec_segment_elems(&few, &e, (size_t)1 << 30);
	EXPECT(got == 1 << 20, "%zu", got);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		EXPECT(!gf_element_coded(cases[i].codec, GF_OP_SUM, &e, NULL), "%s",
		       cases[i].codec);
		got = gf_exec_segment_elems(c, &e, cases[i].count_elems);
		EXPECT(got == (*shared ? cases[i].shared : cases[i].want),
		       "case %zu, shared %d: %zu", i, *shared, got);
	}
}

/* --- refusals ------------------------------------------------------------ */

static void refusals(struct gf_comm *c, void *ctx)
{
	struct gf_exec *x = gf_exec_new(c);
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	struct gf_exec_config config = {.count_elems = 5};
	struct gf_schedule s;

	(void)ctx;
	EXPECT(gf_element_coded("morse", GF_OP_SUM, &config.element, &err) == -EINVAL, "codec");
	EXPECT_TEXT(err.text, "want f32, f16, bf16, trunc16, q8, fp8 or "
			      "fp4, got \"morse\"");
	EXPECT(gf_element_coded("q8", GF_OP_MAX, &config.element, &err) == -EINVAL, "op");
	EXPECT_TEXT(err.text, "codec q8: want sum or avg, got max");
	EXPECT(!gf_element_coded("q8", GF_OP_SUM, &config.element, &err), "%s", err.text);
	EXPECT(gf_exec_run_new(x, &config, &run, &err) == -ENOTSUP, "library");
	EXPECT_TEXT(
		err.text,
		"library: the transport reduces numbers, and what q8 puts on the wire are none");
	config.element = gf_element_set(8, NULL, NULL);
	EXPECT(gf_exec_run_new(x, &config, &run, &err) == -ENOTSUP, "sets");
	gf_schedule_init(&s, 0, 1, 5);
	gf_schedule_finish(&s);
	config.schedule = &s;
	EXPECT(!gf_element_coded("f16", GF_OP_SUM, &config.element, &err), "%s", err.text);
	EXPECT(gf_exec_run_new(x, &config, &run, &err) == -EINVAL, "lossy");
	EXPECT_TEXT(err.text, "codec f16: want a schedule made for lossy codecs");
	EXPECT(!run, "untouched");
	gf_schedule_release(&s);
	gf_exec_free(x);
}

static void all_checks(struct gf_comm *c, void *ctx)
{
	numbers(c, ctx);
	codecs(c, ctx);
	if (c->ranks == 2)
		vectors(c, ctx);
	gtopk(c, ctx);
	topk(c, ctx);
	long_sets(c, ctx);
	halves(c, ctx);
}

/* The real thing: processes, MPI alone or below shared memory. */
static int under_mpirun(bool alone)
{
	struct gf_error err = {""};
	struct gf_comm *c;
	int rank;

	if (alone ? gf_comm_mpi_open(&c, &err) : gf_comm_open(NULL, &c, &err)) {
		printf("%s\n", err.text);
		return 1;
	}
	rank = c->rank;
	all_checks(c, NULL);
	gf_comm_close(c);
	if (rank == 0 && !test_failures)
		puts("all checks hold");
	return TEST_END();
}

int main(int argc, char **argv)
{
	static const int ranks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
	bool no = false, yes = true;
	size_t i;

	watchdog(280);
	if (getenv("OMPI_COMM_WORLD_RANK"))
		return under_mpirun(argc > 1 && !strcmp(argv[1], "mpi"));
	on_ranks(1, refusals, NULL);
	on_ranks(4, segments, &no);
	on_ranks_over(4, gf_comm_shm_over, segments, &yes);
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
		on_ranks(ranks[i], all_checks, NULL);
		on_ranks_over(ranks[i], gf_comm_shm_over, all_checks, NULL);
	}
	return TEST_END();
}
