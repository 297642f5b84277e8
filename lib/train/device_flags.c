/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/device_flags.h"

int gf_device_flags_open(struct gf_device_flags *f, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = f->gpu->ops;
	size_t size_bytes = GF_FLAGS * sizeof(uint32_t), i;
	int rc;

	rc = ops->alloc(f->gpu, size_bytes, &f->words, err);
	rc = rc ? rc : ops->host_alloc(f->gpu, size_bytes, &f->seen, err);
	for (i = 0; i < GF_FLAGS && !rc; i++)
		rc = ops->event_new(f->gpu, false, &f->known[i], err);
	return rc;
}

void gf_device_flags_close(struct gf_device_flags *f)
{
	size_t i;

	if (!f->gpu)
		return;
	for (i = 0; i < GF_FLAGS; i++)
		f->gpu->ops->event_free(f->gpu, f->known[i]);
	f->gpu->ops->host_free(f->gpu, f->seen);
	f->gpu->ops->free(f->gpu, f->words);
	*f = (struct gf_device_flags){0};
}

uint32_t *gf_device_flag(const struct gf_device_flags *f, size_t step)
{
	return (uint32_t *)f->words + step % GF_FLAGS;
}

int gf_device_flag_clear(struct gf_device_flags *f, size_t step,
			 struct gf_error *err)
{
	uint32_t *flag = gf_device_flag(f, step);

	return f->gpu->ops->zero(f->gpu, f->stream, flag, sizeof(*flag), err);
}

int gf_device_flag_set(struct gf_device_flags *f, size_t step,
		       const float *grads, size_t count_elems,
		       struct gf_error *err)
{
	int rc = gf_device_flag_clear(f, step, err);

	if (!rc)
		f->gpu->kernels->nonfinite_f32(
			f->stream, grads, gf_device_flag(f, step), count_elems);
	return rc;
}

int gf_device_flag_send(struct gf_device_flags *f, size_t step,
			struct gf_error *err)
{
	const struct gf_gpu_ops *ops = f->gpu->ops;
	int rc = ops->copy(
		f->gpu, f->stream, (uint32_t *)f->seen + step % GF_FLAGS,
		gf_device_flag(f, step), sizeof(uint32_t), GF_GPU_TO_HOST, err);

	return rc ? rc
		  : ops->record(f->gpu, f->known[step % GF_FLAGS], f->stream,
				err);
}

int gf_device_flag_read(struct gf_device_flags *f, size_t step, bool *bad,
			struct gf_error *err)
{
	const size_t slot = step % GF_FLAGS;
	int rc = f->gpu->ops->event_sync(f->gpu, f->known[slot], err);

	if (!rc)
		*bad = ((const uint32_t *)f->seen)[slot] != 0;
	return rc;
}
