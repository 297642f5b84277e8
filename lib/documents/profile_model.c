/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/profile.h"

#include <math.h>

#include "base/heap.h"
#include "json/record.h"
#include "documents/shared_records.h"

size_t gf_tensor_bytes(const struct gf_tensor *t)
{
	return t->count_elems * gf_dtype_bytes(t->dtype);
}

void gf_tensor_set_shape(struct gf_tensor *t, const size_t *dims, size_t n)
{
	t->shape = gf_xmemdup(dims, n * sizeof(*dims));
	t->nshape = n;
}

size_t gf_model_profile_bytes(const struct gf_model_profile *m)
{
	size_t sum = 0, i;

	for (i = 0; i < m->ntensors; i++)
		sum += gf_tensor_bytes(&m->tensors[i]);
	return sum;
}

size_t gf_model_profile_elems(const struct gf_model_profile *m)
{
	size_t sum = 0, i;

	for (i = 0; i < m->ntensors; i++)
		sum += m->tensors[i].count_elems;
	return sum;
}

size_t gf_model_profile_activations(const struct gf_model_profile *m)
{
	size_t sum = 0, i;

	for (i = 0; i < m->ntensors; i++)
		sum += m->tensors[i].activation_bytes;
	return sum;
}

/* Room for sums that were made in another order than the one they are checked against. */
#define ROUNDING 1e-9

static int check_sizes(const struct gf_json_at *at, const struct gf_model_profile *m,
		       struct gf_error *err)
{
	const size_t limit = (size_t)GF_MAX_SIZE;
	const struct gf_tensor *t = m->tensors;
	size_t sum = 0, kept = 0, i;

	for (i = 0; i < m->ntensors; i++) {
		if (t[i].activation_bytes >= limit - kept)
			return gf_json_refuse(
				at, gf_json_path("tensors/%zu/activation_bytes", i).text, err,
				"want less than 2^62 bytes in all tensors, got more");
		kept += t[i].activation_bytes;
		if (t[i].count_elems >= limit / gf_dtype_bytes(t[i].dtype) ||
		    gf_tensor_bytes(&t[i]) >= limit - sum)
			return gf_json_refuse(at, gf_json_path("tensors/%zu/count_elems", i).text,
					      err,
					      "want less than 2^62 bytes in all tensors, got more");
		sum += gf_tensor_bytes(&t[i]);
	}
	return 0;
}

static int check_shape(const struct gf_json_at *at, const struct gf_tensor *t, size_t index,
		       struct gf_error *err)
{
	size_t left = t->count_elems, i;
	double product = 1;

	/* exact, where a product might overflow */
	for (i = 0; i < t->nshape; i++) {
		product *= (double)t->shape[i];
		left = left % t->shape[i] ? 0 : left / t->shape[i];
	}
	if (!t->nshape || left == 1)
		return 0;
	return gf_json_refuse(at, gf_json_path("tensors/%zu/shape", index).text, err,
			      "want dimensions whose product is the %zu elements, got %.0f",
			      t->count_elems, product);
}

static int check_need(const struct gf_json_at *at, const struct gf_model_profile *m, size_t index,
		      struct gf_error *err)
{
	const double need_s = m->tensors[index].need_s;
	const double forward_s = gf_model_forward_s(m);

	if (isnan(need_s) || need_s <= forward_s * (1 + ROUNDING))
		return 0;
	return gf_json_refuse(at, gf_json_path("tensors/%zu/need_s", index).text, err,
			      "want a number <= %g, the time of a forward pass, got %g", forward_s,
			      need_s);
}

int gf_tensors_check(const struct gf_json_at *at, const struct gf_model_profile *m,
		     const char *backward, struct gf_error *err)
{
	const struct gf_tensor *t = m->tensors;

	if (!m->ntensors)
		return gf_json_refuse(at, "tensors", err, "want at least one tensor, got none");
	for (size_t i = 1; i < m->ntensors; i++)
		if (!(t[i].ready_s >= t[i - 1].ready_s))
			return gf_json_refuse(at, gf_json_path("tensors/%zu/ready_s", i).text, err,
					      "want a number >= %g, the tensor's before it, got %g",
					      t[i - 1].ready_s, t[i].ready_s);
	if (m->backward_s < t[m->ntensors - 1].ready_s * (1 - ROUNDING))
		return gf_json_refuse(at, backward, err,
				      "want a number >= %g, the last tensor's ready_s, got %g",
				      t[m->ntensors - 1].ready_s, m->backward_s);
	for (size_t i = 0; i < m->ntensors; i++) {
		int rc = check_shape(at, &t[i], i, err);

		rc = rc ?: check_need(at, m, i, err);
		if (rc)
			return rc;
	}
	return check_sizes(at, m, err);
}

#define AT(member) offsetof(struct gf_gradient, member)
static const struct gf_field gradient_fields[] = {
	{GF_MEMBER(rms, GF_FIELD_REAL, GF_REQUIRED), .high = 1e100},
	{GF_MEMBER(peak, GF_FIELD_REAL, GF_REQUIRED), .high = 1e6},
	{GF_MEMBER(zeros, GF_FIELD_REAL, GF_REQUIRED), .high = 1},
	{GF_MEMBER(correlation, GF_FIELD_REAL, GF_REQUIRED), .low = -1, .high = 1},
	{NULL},
};
#undef AT

static const struct gf_record gradient_record = {
	GF_RECORD(struct gf_gradient, gradient_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_tensor, member)
static const struct gf_field tensor_fields[] = {
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(count_elems, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_SIZE},
	{GF_MEMBER(dtype, GF_FIELD_CHOICE, GF_REQUIRED), .names = gf_dtype_names},
	{GF_MEMBER(ready_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(need_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_S, .absent = NAN},
	{GF_MEMBER(activation_bytes, GF_FIELD_SIZE, GF_OMITTED), .high = GF_MAX_SIZE},
	{GF_MEMBER(gradient, GF_FIELD_OBJECT, GF_OMITTED), .record = &gradient_record},
	{GF_MEMBERS(shape, GF_FIELD_SIZES, GF_OMITTED), .low = 1, .high = GF_MAX_SIZE},
	{NULL},
};
#undef AT

const struct gf_record gf_tensor_record = {
	GF_RECORD(struct gf_tensor, tensor_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_model_profile, member)
static const struct gf_field model_scalar_fields[] = {
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(device, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(batch_per_rank, GF_FIELD_SIZE, GF_OMITTED), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(accumulate, GF_FIELD_SIZE, GF_OMITTED), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(forward_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(backward_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(update_s, GF_FIELD_REAL, GF_DEFAULTED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(spread_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(drift, GF_FIELD_REAL, GF_OMITTED), .high = 1},
	{GF_MEMBER(overlap_slowdown, GF_FIELD_REAL, GF_DEFAULTED), .low = 1, .high = 1e6,
	 .absent = 1},
	{GF_MEMBER(issue_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_S},
	{NULL},
};

const struct gf_record gf_model_scalars_record = {
	GF_RECORD(struct gf_model_profile, model_scalar_fields),
};

static const struct gf_field model_fields[] = {
	{GF_INCLUDE(gf_model_scalars_record)},
	{GF_MEMBERS(tensors, GF_FIELD_LIST, GF_REQUIRED), .record = &gf_tensor_record,
	 .schema = "\"minItems\": 1"},
	{NULL},
};

static int finish_model(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	return gf_tensors_check(at, item, "backward_s", err);
}

const struct gf_record gf_model_profile_record = {
	GF_RECORD(struct gf_model_profile, model_fields),
	.finish = finish_model,
};

struct gf_model_profile *gf_model_profile_untimed(const char *name, size_t ntensors)
{
	struct gf_model_profile *m = gf_xcalloc(1, sizeof(*m));

	m->name = gf_xstrdup(name);
	m->device = gf_xstrdup("cpu");
	m->overlap_slowdown = 1;
	m->ntensors = ntensors;
	m->tensors = gf_xcalloc(ntensors, sizeof(*m->tensors));
	for (size_t i = 0; i < ntensors; i++) {
		m->tensors[i].dtype = GF_F32;
		m->tensors[i].need_s = NAN;
	}
	return m;
}

struct gf_model_profile *gf_model_profile_copy(const struct gf_model_profile *m)
{
	return gf_list_copy(&gf_model_profile_record, m, m != NULL);
}

void gf_model_profile_free(struct gf_model_profile *m)
{
	gf_list_free(&gf_model_profile_record, m, m != NULL);
}

size_t gf_model_micro_batches(const struct gf_model_profile *m)
{
	return m->accumulate ? m->accumulate : 1;
}

double gf_model_forward_s(const struct gf_model_profile *m)
{
	double n = (double)gf_model_micro_batches(m);

	return fmax((m->forward_s - (n - 1) * m->backward_s) / n, 0);
}

void gf_model_accumulate(struct gf_model_profile *m, size_t micro_batches)
{
	double forward_s = gf_model_forward_s(m), n = (double)micro_batches;

	m->forward_s = n * forward_s + (n - 1) * m->backward_s;
	m->spread_s *= n / (double)gf_model_micro_batches(m); /* as the pass's */
	m->accumulate = micro_batches > 1 ? micro_batches : 0;
}

void gf_model_slow(struct gf_model_profile *m, double factor)
{
	m->forward_s *= factor;
	m->backward_s *= factor;
	for (size_t i = 0; i < m->ntensors; i++) {
		m->tensors[i].ready_s *= factor;
		m->tensors[i].need_s *= factor;
	}
}
