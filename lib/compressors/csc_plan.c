/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of csc that plans need. */
#include "compressors/halves.h"
#include "compressors/csc.h"

#if GF_PLAN_HALF

#include <math.h>

#define CHUNK_ELEMS 32000
/* A tenth of them, the share that is kept by default, is still a choice. */
#define MIN_CHUNKS 32
/* In which a ramp of many steps is priced. */
#define WARM_STRETCHES 64

static const char *const decay_words[] = {"momentum", NULL};

#define AT(member) offsetof(struct gf_csc_params, member)
static const struct gf_field fields[] = {
	{GF_MEMBER(chunk_elems, GF_FIELD_SIZE, GF_DEFAULTED), .low = 1, .high = GF_MAX_SIZE,
	 .absent = CHUNK_ELEMS, .binds = true, .unit = "ELEMS", .help = "elements of a chunk"},
	{GF_MEMBER(keep, GF_FIELD_REAL, GF_REQUIRED), .low = GF_MIN_SHARE, .high = 1, .share = true,
	 .unit = "SHARE", .help = "the share of chunks that is sent"},
	{GF_MEMBER(warmup_steps, GF_FIELD_STEPS, GF_DEFAULTED), .count_offset = AT(warmup_part),
	 .high = GF_MAX_SIZE, .unit = "STEPS",
	 .help = "steps over which the share falls, or 4epochs, or 5% of the run"},
	{GF_MEMBER(decay, GF_FIELD_REAL, GF_DEFAULTED), .high = 1, .absent = NAN,
	 .names = decay_words, .unit = "D", .help = "of what was not sent, 0 to 1 or momentum"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_csc_params, fields),
};
#undef AT

static size_t nchunks(const struct gf_csc_params *p, size_t count_elems)
{
	return (count_elems + p->chunk_elems - 1) / p->chunk_elems;
}

static double kept_of(double share, size_t n)
{
	return fmax(1, ceil(share * (double)n - 1e-9));
}

/* The steady state: whole chunks, evenly spread over the tensors. */
static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	const struct gf_csc_params *p = params;
	const double elems = (double)message->model_elems;
	double share = p->keep;

	if (message->model_elems)
		share = fmin(1, kept_of(p->keep, nchunks(p, message->model_elems)) *
					(double)p->chunk_elems / elems);
	*wires = (struct gf_wire){GF_WIRE_REDUCE, message->count_elems, message->size_bytes, share};
	return 1;
}

static int suits(const void *params, size_t model_elems, struct gf_error *err)
{
	const struct gf_csc_params *p = params;

	return p->chunk_elems <= model_elems
		       ? 0
		       : gf_error_set(err, -EINVAL,
				      "want chunk_elems of 1 to %zu, the model's elements, got %zu",
				      model_elems, p->chunk_elems);
}

/* A norm per chunk, and every rank's place of a bad gradient. */
static size_t own_elems(const void *params, size_t count_elems, int ranks)
{
	const struct gf_csc_params *p = params;

	return nchunks(p, count_elems) + GF_CSC_BAD_PARTS * (size_t)ranks;
}

/*
 * The default chunk is meant for models of millions: a smaller one is cut into MIN_CHUNKS, so that
 * there is something to choose from. A chunk that the user asked for must fit.
 */
static int fit(void *params, const struct gf_model_profile *model,
	       bool (*asked)(const void *ctx, const char *key), const void *ctx,
	       struct gf_text *notes, struct gf_error *err)
{
	struct gf_csc_params *p = params;
	const size_t elems = gf_model_profile_elems(model);
	const size_t before = p->chunk_elems;

	if (asked(ctx, "chunk_elems") && before > elems)
		return gf_error_set(
			err, -EINVAL,
			"--selection: chunk_elems: want at most the %zu elements of %s, got %zu",
			elems, model->name, before);
	if (asked(ctx, "chunk_elems") || elems / MIN_CHUNKS >= before)
		return 0;
	p->chunk_elems = elems > MIN_CHUNKS ? elems / MIN_CHUNKS : 1;
	gf_text_addf(notes, "%s has %zu elements: chunks are of %zu instead of %zu\n", model->name,
		     elems, p->chunk_elems, before);
	return 0;
}

/* The share of the chunks that goes out in a step (from 0). */
static double sent_share(const struct gf_csc_params *p, double step)
{
	double ramp = p->warmup_steps ? fmin(1, step / (double)p->warmup_steps) : 1;

	/* the first step is dense, with or without a ramp */
	return step > 0 ? 1 - (1 - p->keep) * ramp : 1;
}

size_t gf_csc_kept(const struct gf_csc_params *p, size_t n, size_t t)
{
	return (size_t)kept_of(sent_share(p, (double)t), n);
}

/* Stretches of the ramp, by the share in their middle. */
static size_t warm(const void *params, size_t step, size_t epoch_steps, void *then)
{
	const struct gf_csc_params *p = params;
	size_t left = p->warmup_steps > step ? p->warmup_steps - step : 0;
	size_t most = 1 + p->warmup_steps / WARM_STRETCHES;
	size_t n = left < most ? left : most;

	(void)epoch_steps;
	n = step == 0 ? 1 : n;
	if (n > 0)
		((struct gf_csc_params *)then)->keep =
			sent_share(p, (double)step + ((double)n - 1) / 2);
	return n;
}

static const struct gf_csc_params defaults = {
	.chunk_elems = CHUNK_ELEMS,
	.keep = 0.1,
	.warmup_steps = 100,
	.decay = NAN,
};

/* MANUAL
 * GradientFlow's chunks.
 * All gradients, laid end to end, are cut into chunks.
 * A step sends only the important ones, while backward runs, packed into messages that close when
 * more than
 * .Cm fusion
 * says waits.
 * The gradients of the other chunks wait in a history, which is added to the gradients of the
 * next step.
 * At the end of a step all ranks choose the next step's chunks by their L1 norms over all ranks.
 * The first step is dense.
 * With staleness K a step sends the chunks that were chosen K steps before; histories are always
 * those of the step before.
 * @key chunk_elems
 * elements of a chunk; of a small model
 * .Xr gf-plan 1
 * takes a 32nd
 * @key keep
 * the share of chunks that is sent in the end
 * @key warmup_steps
 * in which sparsity rises
 * @key decay
 * the optimiser's momentum, or 1 if it has none.
 * The history of an unimportant chunk is multiplied by this factor; 1 loses nothing */
const struct gf_select_plan gf_select_plan_csc = {
	.name = "csc",
	.description = "chunks with the largest norms, the others wait",
	.place = 20,
	.source = "GradientFlow (Sun et al. 2019)",
	.traits = GF_SELECT_ADDS | GF_SELECT_RECUTS | GF_SELECT_SCALES | GF_SELECT_PIECES,
	.record = &record,
	.defaults = &defaults,
	.wire = wire,
	.warm = warm,
	.suits = suits,
	.own_elems = own_elems,
	.fit = fit,
};

#endif
