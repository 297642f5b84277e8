/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/state.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "json/json.h"

_Static_assert(GF_MODEL_MAX_RANK <= GF_STORED_MAX_RANK, "every parameter can be stored");

static struct gf_state_item *add(struct gf_state *s, enum gf_state_scope scope, char *name,
				 const char *dtype, void *data)
{
	struct gf_state_item *item = gf_array_push(&s->items, &s->nitems, &s->capacity);

	item->scope = scope;
	item->rule = GF_STATE_KEEP;
	item->name = name;
	item->data = data;
	item->tensor.name = name;
	item->tensor.dtype = dtype;
	item->tensor.data = data;
	return item;
}

struct gf_state_item *gf_state_add(struct gf_state *s, enum gf_state_scope scope, char *name,
				   const struct gf_shape *shape, float *data)
{
	struct gf_state_item *item = add(s, scope, name, "F32", data);

	item->tensor.rank = shape->rank;
	memcpy(item->tensor.dims, shape->dims, shape->rank * sizeof(shape->dims[0]));
	item->count_elems = gf_shape_elems(shape);
	return item;
}

struct gf_state_item *gf_state_add_words(struct gf_state *s, enum gf_state_scope scope,
					 const char *name, const char *dtype, void *data,
					 size_t count)
{
	struct gf_state_item *item = add(s, scope, gf_xstrdup(name), dtype, data);

	assert(gf_safetensors_elem_bytes(dtype) == 8);
	item->tensor.rank = 1;
	item->tensor.dims[0] = count;
	item->count_elems = count;
	return item;
}

void gf_state_add_own(struct gf_state *s, const struct gf_state_item *item)
{
	struct gf_state_item *own = gf_array_push(&s->items, &s->nitems, &s->capacity);

	*own = *item;
	own->scope = GF_STATE_OWN;
	own->name = gf_xstrdup(item->name);
	own->tensor.name = own->name;
}

GF_ORDER(by_name, char *, strcmp(*x, *y))

int gf_state_check_names(const struct gf_state *s, struct gf_error *err)
{
	GF_FREED const char **names = gf_xcalloc(s->nitems + 1, sizeof(*names));
	int rc = 0;

	for (size_t i = 0; i < s->nitems; i++)
		names[i] = s->items[i].name;
	qsort(names, s->nitems, sizeof(*names), by_name);
	for (size_t i = 0; i < s->nitems && !rc; i++) {
		if (!gf_json_is_text(names[i]) || strcmp(names[i], GF_SAFETENSORS_METADATA) == 0)
			rc = gf_error_set(
				err, -EINVAL,
				"\"%s\": want a name in UTF-8 that a checkpoint's tensor can have",
				names[i]);
		else if (i > 0 && strcmp(names[i - 1], names[i]) == 0)
			rc = gf_error_set(err, -EINVAL,
					  "\"%s\": want a name for every array of a checkpoint, "
					  "two have this one",
					  names[i]);
	}
	return rc;
}

void gf_state_release(struct gf_state *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nitems; i++)
		free(s->items[i].name);
	free(s->items);
	memset(s, 0, sizeof(*s));
}
