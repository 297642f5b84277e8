/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of powersgd that plans need. */
#include "compressors/halves.h"
#include "compressors/powersgd.h"

#if GF_PLAN_HALF

#include <math.h>

#include "base/rng.h"

#define VALUE_BYTES 4
#define ROWS_TRIED  ((size_t)1 << 16)

#define AT(member) offsetof(struct gf_powersgd_params, member)
static const struct gf_field fields[] = {
	{GF_MEMBER(rank, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = 65536, .unit = "R",
	 .help = "the rank of what stands for a matrix"},
	{GF_MEMBER(warmup_steps, GF_FIELD_STEPS, GF_DEFAULTED), .count_offset = AT(warmup_part),
	 .high = GF_MAX_SIZE, .unit = "STEPS",
	 .help = "dense steps before the first compressed one, or 4epochs, or 5% of the run"},
	{GF_MEMBER(warm_start, GF_FIELD_BOOL, GF_DEFAULTED), .absent = true, .unit = "SWITCH",
	 .help = "whether a step begins with the matrices of the step before, on or off"},
	{GF_MEMBER(min_compression, GF_FIELD_REAL, GF_DEFAULTED), .low = 1, .high = 1e9,
	 .absent = 2, .unit = "RATIO",
	 .help = "matrices that would shrink by no more than this go as they are"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_powersgd_params, fields),
};
#undef AT

/* Of a tensor whose shape nobody knows. */
static size_t square_rows(size_t count_elems)
{
	size_t rows = (size_t)sqrt((double)count_elems), tried;

	for (tried = 0; rows > 1 && tried < ROWS_TRIED; rows--, tried++)
		if (count_elems % rows == 0)
			return rows;
	return 1;
}

struct gf_powersgd_matrix gf_powersgd_matrix_of(const struct gf_powersgd_params *p,
						const struct gf_tensor *tensor)
{
	struct gf_powersgd_matrix m = {0};
	double rows, cols;

	m.rows = tensor->nshape ? tensor->shape[0] : square_rows(tensor->count_elems);
	m.cols = tensor->count_elems / m.rows;
	m.rank = p->rank;
	m.rank = m.rank < m.rows ? m.rank : m.rows;
	m.rank = m.rank < m.cols ? m.rank : m.cols;
	rows = (double)m.rows;
	cols = (double)m.cols;
	if (!((rows + cols) * (double)m.rank * p->min_compression < rows * cols))
		m.rank = 0;
	return m;
}

void gf_powersgd_start(size_t step, size_t tensor, size_t count, float *q)
{
	struct gf_rng rng;

	gf_rng_init(&rng, step, tensor);
	for (size_t i = 0; i < count; i++)
		q[i] = (float)gf_rng_normal(&rng);
}

static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	double first = 0, second = 0;

	for (size_t i = 0; i < message->ntensors; i++) {
		const struct gf_tensor *t = &message->tensors[i];
		struct gf_powersgd_matrix m = gf_powersgd_matrix_of(params, t);

		first += m.rank ? (double)(m.rows * m.rank) : (double)t->count_elems;
		second += (double)(m.cols * m.rank);
	}
	wires[0] = (struct gf_wire){GF_WIRE_REDUCE, first, VALUE_BYTES * first, 1};
	wires[1] = (struct gf_wire){GF_WIRE_REDUCE, second, VALUE_BYTES * second, 1};
	return second > 0 ? 2 : 1;
}

/* Dense: no matrix would shrink enough. */
static size_t warm(const void *params, size_t step, size_t epoch_steps, void *then)
{
	const struct gf_powersgd_params *p = params;

	(void)epoch_steps;
	if (step >= p->warmup_steps)
		return 0;
	((struct gf_powersgd_params *)then)->min_compression = INFINITY;
	return p->warmup_steps - step;
}

static const struct gf_powersgd_params defaults = {
	.rank = 4,
	.warm_start = true,
	.min_compression = 2,
};

/* MANUAL
 * A matrix of gradients is replaced by a product of two thin ones, P and Q.
 * P is summed over ranks and made orthonormal, and then Q is summed.
 * The first all-reduce takes the tensors that are not worth compressing, too.
 * The residual is what the product leaves out, and Q begins the next step.
 * @key rank
 * that of the matrices that stand for a gradient matrix, which has
 * .Cm shape Ns [0]
 * rows.
 * A tensor without a shape has as many rows as the largest divisor of its elements that is not
 * above their square root
 * @key warmup_steps
 * dense ones before the first compressed one
 * @key warm_start
 * a step begins with the matrices of the step before
 * @key min_compression
 * a matrix of m rows and n columns is compressed only if (m + n) times its rank times this number
 * is less than m n */
const struct gf_select_plan gf_select_plan_powersgd = {
	.name = "powersgd",
	.description = "matrices of low rank, by two all-reduces",
	.place = 80,
	.source = "PowerSGD (Vogels et al. 2019)",
	.traits = GF_SELECT_ADDS | GF_SELECT_SHAPES,
	.record = &record,
	.defaults = &defaults,
	.wire = wire,
	.warm = warm,
};

#endif
