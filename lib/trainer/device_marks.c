/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/device_marks.h"

int gf_train_marks_open(struct gf_train_marks *k, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < 2 * GF_MARKS && !rc; i++)
		rc = k->gpu->ops->event_new(k->gpu, true, &k->at[i / GF_MARKS][i % GF_MARKS], err);
	return rc;
}

void gf_train_marks_close(struct gf_train_marks *k)
{
	size_t i;

	for (i = 0; k->gpu && i < 2 * GF_MARKS; i++)
		k->gpu->ops->event_free(k->gpu, k->at[i / GF_MARKS][i % GF_MARKS]);
	*k = (struct gf_train_marks){0};
}

int gf_train_mark(struct gf_train_marks *k, size_t step, enum gf_train_mark mark,
		  struct gf_error *err)
{
	return k->gpu->ops->record(k->gpu, k->at[step % 2][mark], k->stream, err);
}

int gf_train_marks_read(struct gf_train_marks *k, size_t step, struct gf_train_durations *d,
			struct gf_error *err)
{
	double *const parts[] = {&d->forward_s, &d->backward_s, &d->wait_s, &d->update_s};
	struct gf_gpu_event *const *at = k->at[step % 2];
	int i, rc = 0;

	for (i = 0; i + 1 < GF_MARKS && !rc; i++)
		rc = k->gpu->ops->event_s(k->gpu, at[i], at[i + 1], parts[i], err);
	return rc;
}
