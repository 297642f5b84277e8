/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types and operations for MPI's own all-reduce. Half precision, which MPI does not know, is two
 * bytes to it, reduced by our kernels.
 */

#include "gf_kernels.h"
#include "transport/mpi_state.h"

/* MPI passes an operation no context: one function each. */
#define HALF(dtype, op)                                                                            \
	static void reduce_##dtype##_##op(void *in, void *inout, int *count, MPI_Datatype *type)   \
	{                                                                                          \
		(void)type;                                                                        \
		gf_kernels()->reduce[dtype][op](inout, in, (size_t)*count);                        \
	}
#define HALVES(dtype)                                                                              \
	HALF(dtype, GF_OP_SUM)                                                                     \
	HALF(dtype, GF_OP_PROD)                                                                    \
	HALF(dtype, GF_OP_MAX)                                                                     \
	HALF(dtype, GF_OP_MIN)

HALVES(GF_F16)
HALVES(GF_BF16)

static const struct {
	enum gf_dtype dtype;
	enum gf_op op;
	MPI_User_function *reduce;
} halves[] = {
	{GF_F16, GF_OP_SUM, reduce_GF_F16_GF_OP_SUM},
	{GF_F16, GF_OP_PROD, reduce_GF_F16_GF_OP_PROD},
	{GF_F16, GF_OP_MAX, reduce_GF_F16_GF_OP_MAX},
	{GF_F16, GF_OP_MIN, reduce_GF_F16_GF_OP_MIN},
	{GF_BF16, GF_OP_SUM, reduce_GF_BF16_GF_OP_SUM},
	{GF_BF16, GF_OP_PROD, reduce_GF_BF16_GF_OP_PROD},
	{GF_BF16, GF_OP_MAX, reduce_GF_BF16_GF_OP_MAX},
	{GF_BF16, GF_OP_MIN, reduce_GF_BF16_GF_OP_MIN},
};
#define NHALVES (sizeof(halves) / sizeof(halves[0]))

int gf_mpi_numbers_make(struct gf_mpi *m, struct gf_error *err)
{
	struct gf_comm *c = &m->comm;
	int rc = 0;

	MPI_TRY(MPI_Type_contiguous, 2, MPI_BYTE, &m->two_bytes);
	MPI_TRY(MPI_Type_commit, &m->two_bytes);
	for (size_t i = 0; i < NHALVES; i++)
		MPI_TRY(MPI_Op_create, halves[i].reduce, 1,
			&m->half_ops[halves[i].dtype][halves[i].op]);
out:
	return rc;
}

void gf_mpi_numbers_free(struct gf_mpi *m)
{
	for (size_t i = 0; i < NHALVES; i++)
		MPI_Op_free(&m->half_ops[halves[i].dtype][halves[i].op]);
	MPI_Type_free(&m->two_bytes);
}

int gf_mpi_number(const struct gf_mpi *m, const struct gf_element *element, MPI_Datatype *type,
		  MPI_Op *op, struct gf_error *err)
{
	const MPI_Op ops[GF_OPS] = {[GF_OP_SUM] = MPI_SUM,
				    [GF_OP_PROD] = MPI_PROD,
				    [GF_OP_MAX] = MPI_MAX,
				    [GF_OP_MIN] = MPI_MIN};
	const MPI_Datatype types[GF_DTYPES] = {[GF_F32] = MPI_FLOAT,
					       [GF_F64] = MPI_DOUBLE,
					       [GF_F16] = m->two_bytes,
					       [GF_BF16] = m->two_bytes,
					       [GF_I32] = MPI_INT32_T};
	enum gf_op reduction = element->op == GF_OP_AVG ? GF_OP_SUM : element->op;

	if (!element->number)
		return gf_error_set(err, -ENOTSUP, "MPI reduces numbers, not sparse sets");
	*type = types[element->dtype];
	*op = *type == m->two_bytes ? m->half_ops[element->dtype][reduction] : ops[reduction];
	return 0;
}
