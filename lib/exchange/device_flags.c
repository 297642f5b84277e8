/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange/exchange_parts.h"

#include <stdlib.h>

#include "base/heap.h"

int gf_exchange_flags_open(struct gf_exchange_flags *f, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = f->gpu->ops;
	size_t size_bytes = f->count * sizeof(uint32_t), i;
	int rc;

	f->known = gf_xcalloc(f->count, sizeof(struct gf_gpu_event *));
	rc = ops->alloc(f->gpu, size_bytes, &f->words, err);
	rc = rc ? rc : ops->host_alloc(f->gpu, size_bytes, &f->seen, err);
	for (i = 0; i < f->count && !rc; i++)
		rc = ops->event_new(f->gpu, false, &f->known[i], err);
	return rc;
}

void gf_exchange_flags_close(struct gf_exchange_flags *f)
{
	size_t i;

	if (!f->gpu)
		return;
	for (i = 0; f->known && i < f->count; i++)
		f->gpu->ops->event_free(f->gpu, f->known[i]);
	f->gpu->ops->host_free(f->gpu, f->seen);
	f->gpu->ops->free(f->gpu, f->words);
	free(f->known);
	*f = (struct gf_exchange_flags){0};
}

uint32_t *gf_exchange_flag(const struct gf_exchange_flags *f, size_t step)
{
	return (uint32_t *)f->words + step % f->count;
}

int gf_exchange_flag_send(struct gf_exchange_flags *f, struct gf_gpu_stream *s, size_t step,
			  struct gf_error *err)
{
	const struct gf_gpu_ops *ops = f->gpu->ops;
	int rc = ops->copy(f->gpu, s, (uint32_t *)f->seen + step % f->count,
			   gf_exchange_flag(f, step), sizeof(uint32_t), GF_GPU_TO_HOST, err);

	return rc ? rc : ops->record(f->gpu, f->known[step % f->count], s, err);
}

int gf_exchange_flags_copy(struct gf_exchange_flags *f, struct gf_gpu_stream *s, uint32_t *words,
			   enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = f->gpu->ops;
	const bool down = kind == GF_GPU_TO_HOST;
	int rc = ops->copy(f->gpu, s, down ? (void *)words : f->words,
			   down ? f->words : (void *)words, f->count * sizeof(*words), kind, err);

	return rc ? rc : ops->stream_sync(f->gpu, s, err);
}

int gf_exchange_flag_read(struct gf_exchange_flags *f, size_t step, bool *bad, struct gf_error *err)
{
	const size_t slot = step % f->count;
	int rc = f->gpu->ops->event_sync(f->gpu, f->known[slot], err);

	if (!rc)
		*bad = ((const uint32_t *)f->seen)[slot] != 0;
	return rc;
}
