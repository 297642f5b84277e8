/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"

#include <string.h>

#include "base/heap.h"

void *gf_array_push_raw(void *items_ptr, size_t *count, size_t *capacity, size_t item_bytes)
{
	char *items;

	memcpy(&items, items_ptr, sizeof(items));
	if (*count == *capacity) {
		*capacity = *capacity ? *capacity * 2 : 8;
		items = gf_xreallocarray(items, *capacity, item_bytes);
		memcpy(items_ptr, &items, sizeof(items));
	}
	memset(items + *count * item_bytes, 0, item_bytes);
	return items + (*count)++ * item_bytes;
}
