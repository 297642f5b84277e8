/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_SHM_SEGMENT_H
#define GF_COMM_SHM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Memory that other processes of this host can map: an anonymous file, found
 * through /proc/<pid>/fd/<fd>. It has no name that a crash could leave in the
 * file system, and goes away with the last process that holds it. A seal keeps
 * its size: a process that reads pages which are gone is ended by a signal.
 */
struct gf_segment {
	char *base; /* NULL: none */
	size_t size_bytes;
	uint64_t inode; /* tells it from a later file of the same number */
	int fd;         /* -1 in a segment that another process made */
};

/* What another process needs to map it. */
struct gf_segment_place {
	int pid, fd;
	uint64_t inode, size_bytes;
};

/* Zeroed, page-aligned, shared; reserve: with all its pages, so that a full
 * memory is an error here and not a signal in a later copy. */
int gf_segment_make(struct gf_segment *s, size_t size_bytes, bool reserve,
		    struct gf_error *err);
/* Maps a segment of another process. -ESTALE: the place holds another file, or
 * one that is not sealed. */
int gf_segment_map(struct gf_segment *s, const struct gf_segment_place *place,
		   struct gf_error *err);
/* Unmaps, closes, zeroes; safe on a zeroed one. */
void gf_segment_release(struct gf_segment *s);

/* Does it hold [data, data + size_bytes)? */
static inline bool gf_segment_holds(const struct gf_segment *s,
				    const void *data, size_t size_bytes)
{
	const char *at = data;

	return s->base && at >= s->base && size_bytes <= s->size_bytes &&
	       (size_t)(at - s->base) <= s->size_bytes - size_bytes;
}

#endif
