/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/staged.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "engine/stage.h"

/*
 * The stage moves words of 4 bytes, and a message of another type may end
 * within a word. Down, such a word goes with the message that has its first
 * bytes. So the word has come before either message is looked at. Up, the word
 * goes when both messages have ended.
 */
enum { WORD = 4 };

struct gf_bench_staged {
	struct gf_bench_staged_config k;
	struct gf_burst *burst;
	struct gf_grad_stage *stage;
	struct gf_gpu *gpu;
	struct gf_gpu_stream *stream;
	size_t *first_bytes; /* nparts + 1 */
	bool *ended;         /* per part */
	size_t nparts, come;
	double moved_s;
};

/* Messages as parts, an array that the caller frees. */
static struct gf_burst_message *cut(struct gf_bench_staged *s)
{
	const size_t most =
		s->k.part_bytes ? s->k.part_bytes : GF_STAGED_PART_BYTES;
	struct gf_burst_message *parts = NULL;
	size_t i;

	s->first_bytes = gf_xcalloc(1, sizeof(*s->first_bytes));
	for (i = 0; i < s->k.nmessages; i++) {
		const struct gf_burst_message *m = &s->k.messages[i];
		size_t width = m->element.size_bytes, left = m->count_elems, n;

		do {
			/* the last part is up to twice as long */
			n = left * width < 2 * most ? left : most / width;
			parts = gf_xreallocarray(parts, s->nparts + 1,
						 sizeof(*parts));
			parts[s->nparts] = *m;
			parts[s->nparts].count_elems = n;
			s->first_bytes =
				gf_xreallocarray(s->first_bytes, s->nparts + 2,
						 sizeof(*s->first_bytes));
			s->first_bytes[s->nparts + 1] =
				s->first_bytes[s->nparts] + n * width;
			s->nparts++;
			left -= n;
		} while (left);
	}
	return parts;
}

static int open_stage(struct gf_bench_staged *s, struct gf_error *err)
{
	size_t *words = gf_xcalloc(s->nparts + 1, sizeof(*words)), i;
	void *device = gf_device_bench_memory(s->k.device, &s->gpu, &s->stream);
	struct gf_stage_config config = {
		.gpu = s->gpu,
		.compute = s->stream,
		.offsets = words,
		.ntensors = s->nparts,
		.grads = device,
		.params = device,
		.host_params = s->k.host,
	};
	int rc;

	for (i = 1; i <= s->nparts; i++)
		words[i] = (s->first_bytes[i] + WORD - 1) / WORD;
	rc = gf_stage_new(&config, &s->stage, err);
	free(words);
	return rc;
}

int gf_bench_staged_new(const struct gf_bench_staged_config *config,
			struct gf_bench_staged **staged, struct gf_error *err)
{
	struct gf_bench_staged *s = gf_xcalloc(1, sizeof(*s));
	struct gf_burst_message *parts;
	int rc;

	s->k = *config;
	parts = cut(s);
	s->ended = gf_xcalloc(s->nparts + 1, sizeof(*s->ended));
	rc = gf_burst_new(
		&(struct gf_burst_config){
			.comm = config->comm,
			.watch = config->watch,
			.messages = parts,
			.nmessages = s->nparts,
			.lanes = config->lanes,
			.segment_bytes = config->segment_bytes,
		},
		&s->burst, err);
	free(parts);
	s->k.messages = NULL; /* the caller may free them now */
	if (rc == 0)
		rc = gf_comm_agree(config->comm, open_stage(s, err), err);
	if (rc)
		gf_bench_staged_free(s);
	else
		*staged = s;
	return rc;
}

void gf_bench_staged_free(struct gf_bench_staged *s)
{
	if (!s)
		return;
	gf_stage_free(s->stage);
	gf_burst_free(s->burst);
	free(s->first_bytes);
	free(s->ended);
	free(s);
}

static int come(void *ctx, size_t *count, struct gf_error *err)
{
	struct gf_bench_staged *s = ctx;
	size_t part;
	int rc = 1;

	while (s->come < s->nparts &&
	       (rc = gf_stage_look(s->stage, &part, err)) == 1) {
		s->come++;
		s->moved_s = gf_clock_s();
	}
	*count = s->come;
	if (rc < 0 || s->come == s->nparts)
		return rc < 0 ? rc : 0;
	if (s->k.timeout_s > 0 && gf_clock_s() - s->moved_s > s->k.timeout_s)
		return gf_error_set(err, -ETIMEDOUT,
				    "GPU %d: message %zu has not come for %g s",
				    s->gpu->index, s->come, s->k.timeout_s);
	return 0;
}

static int ended(void *ctx, size_t part, struct gf_error *err)
{
	struct gf_bench_staged *s = ctx;
	const size_t from = s->first_bytes[part], to = s->first_bytes[part + 1];
	size_t first = (from + WORD - 1) / WORD, end = to / WORD;

	s->ended[part] = true;
	if (from % WORD && s->ended[part - 1])
		first--;
	if (to % WORD && (part + 1 == s->nparts || s->ended[part + 1]))
		end++;
	return first < end ? gf_stage_up(s->stage, first, end - first, err) : 0;
}

/* Everything that goes down is enqueued; then the parts come one by one. */
static int ask(struct gf_bench_staged *s, bool refill, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	gf_stage_to(s->stage, s->k.host);
	s->come = 0;
	memset(s->ended, 0, s->nparts * sizeof(*s->ended));
	s->moved_s = gf_clock_s();
	if (refill)
		rc = gf_device_bench_refill(s->k.device,
					    s->first_bytes[s->nparts], err);
	for (i = 0; i < s->nparts && rc == 0; i++)
		rc = gf_stage_down(s->stage, i, err);
	return rc ? rc : gf_stage_flush(s->stage, err);
}

int gf_bench_staged_run(struct gf_bench_staged *s, bool refill, double *time_s,
			struct gf_error *err)
{
	const struct gf_burst_flow flow = {come, ended, s};
	double start_s = gf_clock_s();
	int rc = ask(s, refill, err);

	if (rc == 0)
		rc = gf_burst_flow(s->burst, s->k.host, &flow, err);
	if (rc == 0)
		rc = gf_stage_join(s->stage, err);
	if (rc == 0)
		rc = s->gpu->ops->stream_sync(s->gpu, s->stream, err);
	*time_s = gf_clock_s() - start_s;
	return rc;
}

struct gf_burst *gf_bench_staged_burst(const struct gf_bench_staged *s)
{
	return s->burst;
}
