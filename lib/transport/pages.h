/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_PAGES_H
#define GF_TRANSPORT_PAGES_H

#include <stddef.h>

#include "base/error.h"

struct gf_comm;

/* Page-aligned, zeroed, in huge pages where the kernel gives them; 0 bytes are one page.
 * -ENOMEM. */
int gf_pages_alloc(size_t size_bytes, void **data, struct gf_error *err);
/* NULL is allowed. */
void gf_pages_free(void *data);
/* The whole pages of a range go back to the system; their values are zeros then. Of memory that was
 * mapped, shared or not. */
void gf_pages_give_back(void *data, size_t size_bytes);
/* So that ranges can go back page by page. */
void gf_pages_split(void *data, size_t size_bytes);
/* gf_pages_alloc and gf_pages_free as entries of gf_comm_ops. */
int gf_pages_buffer_alloc(struct gf_comm *c, size_t size_bytes, void **data, struct gf_error *err);
void gf_pages_buffer_free(struct gf_comm *c, void *data);

#endif
