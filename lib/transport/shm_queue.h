/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_SHM_QUEUE_H
#define GF_TRANSPORT_SHM_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * One direction between two ranks of a host, in shared memory: a ring of entries with one writer
 * and one reader. An entry announces a message. A short message travels inside the entry; a long
 * one is read from the sender's memory.
 */
#define GF_SHM_SLOTS       32
#define GF_SHM_EAGER_BYTES 4096
/* Longer lent messages are read from the sender's memory: the sum goes there. */
#define GF_SHM_LENT_BYTES 1024

enum gf_shm_kind {
	GF_SHM_EAGER,     /* the bytes are in the entry */
	GF_SHM_DIRECT,    /* read them at segment + offset, then say done */
	GF_SHM_ELSEWHERE, /* they come through the transport below */
	GF_SHM_BACK,      /* they lie at the receiver, segment + offset */
	GF_SHM_RETIRE,    /* no message: the segment is going away */
};

struct gf_shm_entry {
	uint64_t tag;
	uint64_t size_bytes;
	uint64_t offset;        /* DIRECT, BACK: into the segment */
	uint64_t segment_bytes; /* DIRECT */
	uint64_t inode;         /* DIRECT: the segment's */
	uint64_t segment; /* DIRECT, RETIRE: serial number at the sender; BACK: at the receiver */
	int32_t fd;       /* DIRECT: the segment's, at the sender */
	int32_t done;     /* DIRECT: which done flag to raise */
	enum gf_shm_kind kind;
	bool lent;                                       /* DIRECT: may be written, too */
	_Alignas(double) char bytes[GF_SHM_EAGER_BYTES]; /* numbers */
};

/* Entries do not share a cache line. */
struct gf_shm_slot {
	_Alignas(64) struct gf_shm_entry entry;
};

#define GF_SHM_DONE 1024 /* long messages in flight between two ranks */

struct gf_shm_queue {
	_Alignas(64) _Atomic uint32_t written; /* by the sender */
	_Alignas(64) _Atomic uint32_t read;    /* by the receiver */
	/* Raised by the receiver, lowered by the sender when it reuses one. */
	_Alignas(64) _Atomic uint32_t done[GF_SHM_DONE];
	struct gf_shm_slot slots[GF_SHM_SLOTS];
};

/* The next entry to fill, or NULL when all are taken; then publish it. */
static inline struct gf_shm_entry *gf_shm_next(struct gf_shm_queue *q)
{
	uint32_t written = atomic_load_explicit(&q->written, memory_order_relaxed);
	uint32_t read = atomic_load_explicit(&q->read, memory_order_acquire);

	return written - read == GF_SHM_SLOTS ? NULL : &q->slots[written % GF_SHM_SLOTS].entry;
}

static inline void gf_shm_publish(struct gf_shm_queue *q)
{
	atomic_fetch_add_explicit(&q->written, 1, memory_order_release);
}

/* The oldest entry, or NULL when there is none; then pop it. */
static inline struct gf_shm_entry *gf_shm_first(struct gf_shm_queue *q)
{
	uint32_t read = atomic_load_explicit(&q->read, memory_order_relaxed);

	if (read == atomic_load_explicit(&q->written, memory_order_acquire))
		return NULL;
	return &q->slots[read % GF_SHM_SLOTS].entry;
}

static inline void gf_shm_pop(struct gf_shm_queue *q)
{
	atomic_fetch_add_explicit(&q->read, 1, memory_order_release);
}

/* The receiver is through with a long message. */
static inline void gf_shm_raise(_Atomic uint32_t *done)
{
	atomic_store_explicit(done, 2, memory_order_release);
}

/*
 * Memory that other processes of this host can map: an anonymous file, found through
 * /proc/<pid>/fd/<fd>. It has no name that a crash could leave in the file system, and goes away
 * with the last process that holds it. A seal keeps its size: a process that reads pages which are
 * gone is ended by a signal.
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

/* Zeroed, page-aligned, shared; reserve: with all its pages, so that a full memory is an error here
 * and not a signal in a later copy. */
int gf_segment_make(struct gf_segment *s, size_t size_bytes, bool reserve, struct gf_error *err);
/* Maps a segment of another process. -ESTALE: the place holds another file, or one that is not
 * sealed. */
int gf_segment_map(struct gf_segment *s, const struct gf_segment_place *place,
		   struct gf_error *err);
/* Unmaps, closes, zeroes; safe on a zeroed one. */
void gf_segment_release(struct gf_segment *s);

/* Does it hold [data, data + size_bytes)? */
static inline bool gf_segment_holds(const struct gf_segment *s, const void *data, size_t size_bytes)
{
	const char *at = data;

	return s->base && at >= s->base && size_bytes <= s->size_bytes &&
	       (size_t)(at - s->base) <= s->size_bytes - size_bytes;
}

#endif
