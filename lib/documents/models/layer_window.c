/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/models/layer.h"
#include "json/record_schema.h"

/* Layers that slide a window over {C, H, W}: convolution and pooling. */

#define MAX_WINDOW 1e6

/* "kernel" and "pad": one number for both sides, or [height, width]. */
static int read_sides(struct gf_json_at *at, const char *key, size_t low, size_t *high,
		      size_t *wide, struct gf_error *err)
{
	struct gf_json_at row;
	size_t count;
	int rc;

	if (!gf_json_is_array(at, key)) {
		rc = gf_json_size(at, key, low, (size_t)MAX_WINDOW, high, err);
		*wide = *high;
		return rc;
	}
	rc = gf_json_array(at, key, &row, &count, err);
	if (!rc && count != 2)
		rc = gf_json_refuse(at, key, err,
				    "want a number or [height, width], got %zu numbers", count);
	rc = rc ?: gf_json_size(gf_json_item(&row, 0), NULL, low, (size_t)MAX_WINDOW, high, err);
	return rc ?: gf_json_size(gf_json_item(&row, 1), NULL, low, (size_t)MAX_WINDOW, wide, err);
}

static void write_sides(struct gf_json_writer *w, const char *key, size_t high, size_t wide)
{
	if (high == wide) {
		gf_json_put_size(w, key, high);
		return;
	}
	gf_json_open_row(w, key);
	gf_json_put_size(w, NULL, high);
	gf_json_put_size(w, NULL, wide);
	gf_json_close_array(w);
}

static void add_sides(size_t low, struct gf_text *out)
{
	gf_text_addf(out, "{\"anyOf\": [");
	gf_schema_size((double)low, MAX_WINDOW, out);
	gf_text_addf(out, ", {\"type\": \"array\", \"minItems\": 2, \"maxItems\": 2, \"items\": ");
	gf_schema_size((double)low, MAX_WINDOW, out);
	gf_text_addf(out, "}]}");
}

#define SIDES(what, low)                                                                           \
	static int read_##what(struct gf_json_at *at, const char *key, void *place,                \
			       struct gf_error *err)                                               \
	{                                                                                          \
		struct gf_layer *l = place;                                                        \
                                                                                                   \
		return read_sides(at, key, low, &l->what, &l->what##_w, err);                      \
	}                                                                                          \
	static void write_##what(struct gf_json_writer *w, const char *key, const void *place)     \
	{                                                                                          \
		const struct gf_layer *l = place;                                                  \
                                                                                                   \
		write_sides(w, key, l->what, l->what##_w);                                         \
	}                                                                                          \
	static void add_##what(struct gf_text *out)                                                \
	{                                                                                          \
		add_sides(low, out);                                                               \
	}                                                                                          \
	static const struct gf_field_own what##_own = {                                            \
		.read = read_##what,                                                               \
		.write = write_##what,                                                             \
		.schema = add_##what,                                                              \
	};
SIDES(kernel, 1)
SIDES(pad, 0)

/* out = {channels, H', W'} */
static int slide(struct gf_infer *c, size_t channels)
{
	struct gf_layer *l = c->layer;
	char shape[96];

	if (l->in.rank != 3)
		return gf_infer_refuse_shape(c, &l->in, "{C, H, W}");
	if (l->in.dims[1] + 2 * l->pad < l->kernel || l->in.dims[2] + 2 * l->pad_w < l->kernel_w)
		return gf_infer_refuse(c, "kernel",
				       "want a window inside the padded input %s, got %zu x %zu",
				       gf_shape_text(&l->in, shape), l->kernel, l->kernel_w);
	l->out = (struct gf_shape){3,
				   {channels,
				    (l->in.dims[1] + 2 * l->pad - l->kernel) / l->stride + 1,
				    (l->in.dims[2] + 2 * l->pad_w - l->kernel_w) / l->stride + 1}};
	return 0;
}

/* --- conv ---------------------------------------------------------------- */

#define AT(member) offsetof(struct gf_layer, member)
static const struct gf_field conv_fields[] = {
	{GF_MEMBER(filters, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_COUNT},
	{"kernel", GF_FIELD_OWN, .own = &kernel_own},
	{GF_MEMBER(stride, GF_FIELD_SIZE, GF_DEFAULTED), .low = 1, .high = MAX_WINDOW, .absent = 1},
	{"pad", GF_FIELD_OWN, GF_DEFAULTED, .own = &pad_own},
	{GF_MEMBER(groups, GF_FIELD_SIZE, GF_OMITTED), .low = 1, .high = GF_MAX_COUNT, .absent = 1},
	{GF_MEMBER(bias, GF_FIELD_BOOL, GF_DEFAULTED), .absent = 1},
	{GF_MEMBER(frozen, GF_FIELD_BOOL, GF_OMITTED)},
	{NULL},
};

static int infer_conv(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	size_t in_channels;
	int rc = slide(c, l->filters);

	if (rc)
		return rc;
	in_channels = l->in.dims[0];
	if (in_channels % l->groups || l->filters % l->groups)
		return gf_infer_refuse(
			c, "groups",
			"want a divisor of %zu input channels and %zu filters, got %zu",
			in_channels, l->filters, l->groups);
	in_channels /= l->groups;
	gf_infer_param(c, "weight",
		       (struct gf_shape){4, {l->filters, in_channels, l->kernel, l->kernel_w}});
	if (l->bias)
		gf_infer_param(c, "bias", (struct gf_shape){1, {l->filters}});
	gf_infer_multiply(c, 2.0 * (double)in_channels * (double)l->kernel * (double)l->kernel_w *
				     (double)gf_shape_elems(&l->out));
	return 0;
}

const struct gf_layer_kind gf_layer_conv = {
	.inputs = {1, 1},
	.fields = conv_fields,
	.infer = infer_conv,
};

/* --- pooling ------------------------------------------------------------- */

static const struct gf_field pool_fields[] = {
	{"kernel", GF_FIELD_OWN, .own = &kernel_own},
	{GF_MEMBER(stride, GF_FIELD_SIZE, GF_DEFAULTED), .low = 1,
	 .high = MAX_WINDOW}, /* absent: 0, which infer_pool replaces */
	{"pad", GF_FIELD_OWN, GF_DEFAULTED, .own = &pad_own},
	{NULL},
};

static int infer_pool(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	int rc;

	if (!l->stride)
		l->stride = l->kernel;
	/* otherwise a window could see nothing but padding */
	if (l->pad >= l->kernel || l->pad_w >= l->kernel_w)
		return gf_infer_refuse(c, "pad", "want less than the kernel, got %zu",
				       l->pad >= l->kernel ? l->pad : l->pad_w);
	rc = slide(c, l->in.dims[0]);
	if (!rc)
		gf_infer_elementwise(c, (double)(l->kernel * l->kernel_w),
				     (double)(l->kernel * l->kernel_w));
	return rc;
}

static int infer_globalpool(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;

	if (l->in.rank != 3)
		return gf_infer_refuse_shape(c, &l->in, "{C, H, W}");
	l->out = (struct gf_shape){1, {l->in.dims[0]}};
	l->forward_flops = (double)gf_shape_elems(&l->in);
	l->backward_flops = l->forward_flops;
	return 0;
}

static const struct gf_field no_fields[] = {
	{NULL},
};

const struct gf_layer_kind gf_layer_maxpool = {
	.inputs = {1, 1},
	.fields = pool_fields,
	.infer = infer_pool,
};

const struct gf_layer_kind gf_layer_avgpool = {
	.inputs = {1, 1},
	.fields = pool_fields,
	.infer = infer_pool,
};

const struct gf_layer_kind gf_layer_globalpool = {
	.inputs = {1, 1},
	.fields = no_fields,
	.infer = infer_globalpool,
};
