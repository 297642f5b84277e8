/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/profile.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "doc/contention.h"
#include "doc/record.h"
#include "doc/shared.h"

#define FORMAT "gf-profile"

const char *const gf_dtype_names[] = {"f32", "f64", "f16", "bf16", "i32", NULL};

size_t gf_dtype_bytes(enum gf_dtype dtype)
{
	static const size_t bytes[] = {4, 8, 2, 2, 4};

	return bytes[dtype];
}

size_t gf_tensor_bytes(const struct gf_tensor *t)
{
	return t->count_elems * gf_dtype_bytes(t->dtype);
}

size_t gf_model_profile_bytes(const struct gf_model_profile *m)
{
	size_t sum = 0, i;

	for (i = 0; i < m->ntensors; i++)
		sum += gf_tensor_bytes(&m->tensors[i]);
	return sum;
}

/* --- the model half ------------------------------------------------------ */

/* Room for sums that were made in another order than the one they are
 * checked against. */
#define ROUNDING 1e-9

static int check_sizes(const struct gf_json_at *at,
		       const struct gf_model_profile *m, struct gf_error *err)
{
	const size_t limit = (size_t)GF_MAX_SIZE;
	const struct gf_tensor *t = m->tensors;
	char place[64];
	size_t sum = 0, i;

	for (i = 0; i < m->ntensors; i++) {
		if (t[i].count_elems >= limit / gf_dtype_bytes(t[i].dtype) ||
		    gf_tensor_bytes(&t[i]) >= limit - sum) {
			snprintf(place, sizeof(place),
				 "tensors/%zu/count_elems", i);
			return gf_json_refuse(
				at, place, err,
				"want less than 2^62 bytes in all tensors, "
				"got more");
		}
		sum += gf_tensor_bytes(&t[i]);
	}
	return 0;
}

int gf_tensors_check(const struct gf_json_at *at,
		     const struct gf_model_profile *m, const char *backward,
		     struct gf_error *err)
{
	const struct gf_tensor *t = m->tensors;
	char place[64];
	size_t i;

	if (!m->ntensors)
		return gf_json_refuse(at, "tensors", err,
				      "want at least one tensor, got none");
	for (i = 1; i < m->ntensors; i++) {
		if (t[i].ready_s >= t[i - 1].ready_s)
			continue;
		snprintf(place, sizeof(place), "tensors/%zu/ready_s", i);
		return gf_json_refuse(at, place, err,
				      "want a number >= %g, the tensor's "
				      "before it, got %g",
				      t[i - 1].ready_s, t[i].ready_s);
	}
	if (m->backward_s < t[m->ntensors - 1].ready_s * (1 - ROUNDING))
		return gf_json_refuse(at, backward, err,
				      "want a number >= %g, the last tensor's "
				      "ready_s, got %g",
				      t[m->ntensors - 1].ready_s,
				      m->backward_s);
	return check_sizes(at, m, err);
}

#define AT(member) offsetof(struct gf_tensor, member)
static const struct gf_field tensor_fields[] = {
	{"name", GF_FIELD_STRING, .offset = AT(name)},
	{"count_elems", GF_FIELD_SIZE, .offset = AT(count_elems), .low = 1,
	 .high = GF_MAX_SIZE},
	{"dtype", GF_FIELD_CHOICE, .offset = AT(dtype),
	 .names = gf_dtype_names},
	{"ready_s", GF_FIELD_REAL, .offset = AT(ready_s),
	 .high = GF_MAX_TIME_S},
	{"need_s", GF_FIELD_REAL, GF_OMITTED, .offset = AT(need_s),
	 .high = GF_MAX_TIME_S, .absent = NAN},
	{NULL},
};
#undef AT

const struct gf_record gf_tensor_record = {
	.bytes = sizeof(struct gf_tensor),
	.extra_offset = offsetof(struct gf_tensor, extra),
	.one_line = true,
	.fields = tensor_fields,
};

#define AT(member) offsetof(struct gf_model_profile, member)
static const struct gf_field model_scalar_fields[] = {
	{"name", GF_FIELD_STRING, .offset = AT(name)},
	{"device", GF_FIELD_STRING, GF_OMITTED, .offset = AT(device)},
	{"batch_per_rank", GF_FIELD_SIZE, GF_OMITTED,
	 .offset = AT(batch_per_rank), .low = 1, .high = GF_MAX_COUNT},
	{"forward_s", GF_FIELD_REAL, .offset = AT(forward_s),
	 .high = GF_MAX_TIME_S},
	{"backward_s", GF_FIELD_REAL, .offset = AT(backward_s),
	 .high = GF_MAX_TIME_S},
	{"update_s", GF_FIELD_REAL, GF_DEFAULTED, .offset = AT(update_s),
	 .high = GF_MAX_TIME_S},
	{"overlap_slowdown", GF_FIELD_REAL, GF_DEFAULTED,
	 .offset = AT(overlap_slowdown), .low = 1, .high = 1e6, .absent = 1},
	{NULL},
};

const struct gf_record gf_model_scalars_record = {
	.bytes = sizeof(struct gf_model_profile),
	.extra_offset = AT(extra),
	.fields = model_scalar_fields,
};

static const struct gf_field model_fields[] = {
	{.type = GF_FIELD_INCLUDE, .record = &gf_model_scalars_record},
	{"tensors", GF_FIELD_LIST, .offset = AT(tensors),
	 .count_offset = AT(ntensors), .record = &gf_tensor_record},
	{NULL},
};

static int finish_model(const struct gf_json_at *at, void *item,
			struct gf_error *err)
{
	return gf_tensors_check(at, item, "backward_s", err);
}

static const struct gf_record model_record = {
	.bytes = sizeof(struct gf_model_profile),
	.extra_offset = AT(extra),
	.fields = model_fields,
	.finish = finish_model,
};
#undef AT

struct gf_model_profile *gf_model_profile_copy(const struct gf_model_profile *m)
{
	return gf_list_copy(&model_record, m, m != NULL);
}

void gf_model_profile_free(struct gf_model_profile *m)
{
	gf_list_free(&model_record, m, m != NULL);
}

/* --- the network half ---------------------------------------------------- */

/* A row beside size_bytes, with one number for each of its entries. */
static int read_row(struct gf_json_at *at, const char *key, size_t want,
		    double **out, struct gf_error *err)
{
	struct gf_json_at row;
	size_t count, i;
	double *numbers;
	int rc;

	rc = gf_json_array(at, key, &row, &count, err);
	if (rc)
		return rc;
	if (count != want)
		return gf_json_refuse(at, key, err,
				      "want %zu numbers, one per size_bytes, "
				      "got %zu",
				      want, count);
	numbers = gf_xcalloc(count + 1, sizeof(double));
	for (i = 0; i < count && !rc; i++)
		rc = gf_json_item_real(&row, i, 0, GF_MAX_TIME_S, &numbers[i],
				       err);
	if (rc)
		free(numbers);
	else
		*out = numbers;
	return rc;
}

static void write_row(struct gf_json_writer *w, const char *key,
		      const double *numbers, size_t count)
{
	size_t i;

	gf_json_open_row(w, key);
	for (i = 0; i < count; i++)
		gf_json_put_real(w, NULL, numbers[i]);
	gf_json_close_array(w);
}

static int read_time(struct gf_json_at *at, const char *key, void *place,
		     struct gf_error *err)
{
	struct gf_fit *fit = place;

	return read_row(at, key, fit->npoints, &fit->time_s, err);
}

static void write_time(struct gf_json_writer *w, const char *key,
		       const void *place)
{
	const struct gf_fit *fit = place;

	write_row(w, key, fit->time_s, fit->npoints);
}

static bool no_points(const void *place)
{
	const struct gf_fit *fit = place;

	return !fit->npoints;
}

static int read_spread(struct gf_json_at *at, const char *key, void *place,
		       struct gf_error *err)
{
	struct gf_fit *fit = place;

	return read_row(at, key, fit->npoints, &fit->spread_s, err);
}

static void write_spread(struct gf_json_writer *w, const char *key,
			 const void *place)
{
	const struct gf_fit *fit = place;

	write_row(w, key, fit->spread_s, fit->npoints);
}

static bool no_spread(const void *place)
{
	const struct gf_fit *fit = place;

	return !fit->spread_s;
}

/* Both rows: `time` stands in for the two. */
static void release_rows(void *place)
{
	struct gf_fit *fit = place;

	free(fit->time_s);
	free(fit->spread_s);
}

static void copy_rows(void *place)
{
	struct gf_fit *fit = place;
	size_t bytes = fit->npoints * sizeof(double);

	if (fit->time_s)
		fit->time_s = gf_xmemdup(fit->time_s, bytes);
	if (fit->spread_s)
		fit->spread_s = gf_xmemdup(fit->spread_s, bytes);
}

static const struct gf_field_own time_own = {
	.read = read_time,
	.write = write_time,
	.absent = no_points,
	.release = release_rows,
	.copy = copy_rows,
};

static const struct gf_field_own spread_own = {
	.read = read_spread,
	.write = write_spread,
	.absent = no_spread,
};

#define AT(member) offsetof(struct gf_fit, member)
static const struct gf_field fit_fields[] = {
	{"r_squared", GF_FIELD_REAL, .offset = AT(r_squared), .low = -1e12,
	 .high = 1},
	{"residual_rms", GF_FIELD_REAL, .offset = AT(residual_rms),
	 .high = 1e12},
	{"residual_max", GF_FIELD_REAL, .offset = AT(residual_max),
	 .high = 1e12},
	{"size_bytes", GF_FIELD_SIZES, .offset = AT(size_bytes),
	 .count_offset = AT(npoints), .high = GF_MAX_SIZE},
	{"time_s", GF_FIELD_OWN, .own = &time_own},
	{"spread_s", GF_FIELD_OWN, GF_OMITTED, .own = &spread_own},
	{NULL},
};

static const struct gf_record fit_record = {
	.bytes = sizeof(struct gf_fit),
	.extra_offset = AT(extra),
	.fields = fit_fields,
};
#undef AT

#define AT(member) offsetof(struct gf_allreduce_cost, member)
static const struct gf_field allreduce_fields[] = {
	{"algorithm", GF_FIELD_STRING, .offset = AT(algorithm)},
	{"startup_s", GF_FIELD_REAL, .offset = AT(startup_s),
	 .high = GF_MAX_TIME_S},
	{"per_byte_s", GF_FIELD_REAL, .offset = AT(per_byte_s),
	 .high = GF_MAX_TIME_S},
	{"contention", GF_FIELD_OWN, GF_OMITTED, .offset = AT(contention),
	 .own = &gf_contention_own},
	{"fit", GF_FIELD_GROUP, GF_OMITTED, .offset = AT(fit),
	 .record = &fit_record},
	{NULL},
};

static int finish_allreduce(const struct gf_json_at *at, void *item,
			    struct gf_error *err)
{
	const struct gf_allreduce_cost *cost = item;

	if (cost->startup_s == 0 && cost->per_byte_s == 0)
		return gf_json_refuse(at, "per_byte_s", err,
				      "want a number > 0 where startup_s is 0, "
				      "got 0");
	return 0;
}

static const struct gf_record allreduce_record = {
	.bytes = sizeof(struct gf_allreduce_cost),
	.extra_offset = AT(extra),
	.fields = allreduce_fields,
	.finish = finish_allreduce,
};
#undef AT

#define AT(member) offsetof(struct gf_level_cost, member)
static const struct gf_field level_cost_fields[] = {
	{"name", GF_FIELD_STRING, .offset = AT(name)},
	{"alpha_s", GF_FIELD_REAL, .offset = AT(alpha_s),
	 .high = GF_MAX_TIME_S},
	{"beta_s_per_byte", GF_FIELD_REAL, .offset = AT(beta_s_per_byte),
	 .high = GF_MAX_TIME_S},
	{"reduce_s_per_byte", GF_FIELD_REAL, .offset = AT(reduce_s_per_byte),
	 .high = GF_MAX_TIME_S},
	{"contention", GF_FIELD_OWN, GF_OMITTED, .offset = AT(contention),
	 .own = &gf_contention_own},
	{"fit", GF_FIELD_GROUP, GF_OMITTED, .offset = AT(fit),
	 .record = &fit_record},
	{NULL},
};

static const struct gf_record level_cost_record = {
	.bytes = sizeof(struct gf_level_cost),
	.extra_offset = AT(extra),
	.fields = level_cost_fields,
};
#undef AT

static int finish_network(const struct gf_json_at *at, void *item,
			  struct gf_error *err)
{
	const struct gf_network *net = item;
	char place[64];
	size_t i, k;

	for (i = 0; i < net->nallreduce; i++) {
		for (k = 0; k < i; k++) {
			if (strcmp(net->allreduce[i].algorithm,
				   net->allreduce[k].algorithm) != 0)
				continue;
			snprintf(place, sizeof(place),
				 "allreduce/%zu/algorithm", i);
			return gf_json_refuse(
				at, place, err,
				"want each algorithm once, got \"%.40s\" again",
				net->allreduce[i].algorithm);
		}
	}
	return 0;
}

#define AT(member) offsetof(struct gf_network, member)
static const struct gf_field network_fields[] = {
	{"ranks", GF_FIELD_INT, GF_OMITTED, .offset = AT(ranks), .low = 1,
	 .high = INT_MAX},
	{"allreduce", GF_FIELD_LIST, GF_OMITTED, .offset = AT(allreduce),
	 .count_offset = AT(nallreduce), .record = &allreduce_record},
	{"levels", GF_FIELD_LIST, GF_OMITTED, .offset = AT(levels),
	 .count_offset = AT(nlevels), .record = &level_cost_record},
	{NULL},
};

const struct gf_record gf_network_record = {
	.bytes = sizeof(struct gf_network),
	.extra_offset = AT(extra),
	.fields = network_fields,
	.finish = finish_network,
};
#undef AT

int gf_network_read(struct gf_json_at *at, const char *key,
		    struct gf_network **net, struct gf_error *err)
{
	struct gf_json_at inner;
	struct gf_network *read;
	int rc;

	rc = gf_json_object(at, key, &inner, err);
	if (rc)
		return rc;
	read = gf_xcalloc(1, sizeof(*read));
	rc = gf_record_read(&inner, &gf_network_record, read, err);
	if (rc)
		free(read);
	else
		*net = read;
	return rc;
}

void gf_network_write(struct gf_json_writer *w, const char *key,
		      const struct gf_network *net)
{
	gf_json_open_object(w, key);
	gf_record_write(w, &gf_network_record, net);
	gf_json_close_object(w);
}

struct gf_network *gf_network_copy(const struct gf_network *net)
{
	return gf_list_copy(&gf_network_record, net, net != NULL);
}

void gf_network_free(struct gf_network *net)
{
	gf_list_free(&gf_network_record, net, net != NULL);
}

/* --- the document -------------------------------------------------------- */

#define AT(member) offsetof(struct gf_profile, member)
static const struct gf_field profile_fields[] = {
	{"producer", GF_FIELD_STRING, GF_OMITTED, .offset = AT(producer)},
	{"model", GF_FIELD_OBJECT, GF_OMITTED, .offset = AT(model),
	 .record = &model_record},
	{"network", GF_FIELD_OBJECT, GF_OMITTED, .offset = AT(network),
	 .record = &gf_network_record},
	{"measured", GF_FIELD_RAW, GF_OMITTED, .offset = AT(measured)},
	{NULL},
};

static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_profile *p = item;

	if (!p->model && !p->network)
		return gf_json_refuse(at, NULL, err,
				      "want a model or a network, got neither");
	return 0;
}

static const struct gf_record profile_record = {
	.bytes = sizeof(struct gf_profile),
	.extra_offset = AT(extra),
	.fields = profile_fields,
	.finish = finish,
};
#undef AT

int gf_profile_read(const struct gf_json *root, const char *file,
		    struct gf_profile *p, struct gf_error *err)
{
	return gf_document_read(root, file, FORMAT, &profile_record, p, err);
}

int gf_profile_check(const struct gf_profile *p, struct gf_error *err)
{
	return gf_document_check(FORMAT, &profile_record, p, err);
}

char *gf_profile_write(const struct gf_profile *p)
{
	return gf_document_write(FORMAT, &profile_record, p);
}

void gf_profile_release(struct gf_profile *p)
{
	gf_record_release(&profile_record, p);
}

/* One text of two, which are both owned; *b is taken. */
static void merge_into(char **a, char **b)
{
	char *merged = gf_json_merge(*a, *b);

	free(*a);
	free(*b);
	*a = merged;
	*b = NULL;
}

int gf_profile_combine(struct gf_profile *a, struct gf_profile *b,
		       struct gf_error *err)
{
	if ((a->model && b->model) || (a->network && b->network))
		return gf_error_set(err, -EINVAL,
				    "want one %s half, got two that differ",
				    a->model && b->model ? "model" : "network");
	if (!a->model) {
		a->model = b->model;
		b->model = NULL;
	}
	if (!a->network) {
		a->network = b->network;
		b->network = NULL;
	}
	merge_into(&a->measured, &b->measured);
	merge_into(&a->extra, &b->extra);
	return 0;
}
