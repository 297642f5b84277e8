/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/loader.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/heap.h"
#include "base/rng.h"
#include "data/data_parts.h"

/* --- the order of samples --------------------------------------------------
 */

#define NO_EPOCH SIZE_MAX
/* Epoch e shuffles with stream ORDER + e of the seed. */
#define STREAM_ORDER 0x4f52444552000000u

void gf_order_init(struct gf_order *o, size_t count, uint64_t seed, bool consecutive)
{
	o->permutation = gf_xcalloc(count ? count : 1, sizeof(size_t));
	o->count = count;
	o->epoch = NO_EPOCH;
	o->seed = seed;
	o->consecutive = consecutive;
}

void gf_order_release(struct gf_order *o)
{
	if (!o)
		return;
	free(o->permutation);
	memset(o, 0, sizeof(*o));
}

size_t gf_order_steps(const struct gf_order *o, int ranks, size_t batch)
{
	assert(ranks > 0 && batch > 0);
	return o->count / (size_t)ranks / batch;
}

/* From the identity, so that an epoch does not depend on those before it. */
static void shuffle(struct gf_order *o, size_t epoch)
{
	struct gf_rng rng;

	for (size_t i = 0; i < o->count; i++)
		o->permutation[i] = i;
	gf_rng_init(&rng, o->seed, STREAM_ORDER + epoch);
	gf_rng_shuffle(&rng, o->permutation, o->count);
	o->epoch = epoch;
}

static const size_t *take_rows(struct gf_order *o, size_t step, int ranks, int rank, size_t batch)
{
	size_t steps = gf_order_steps(o, ranks, batch), i;

	for (i = 0; i < batch; i++)
		o->permutation[i] = ((size_t)rank * batch + i) * steps + step;
	return o->permutation;
}

const size_t *gf_order_slice(struct gf_order *o, size_t epoch, size_t step, int ranks, int rank,
			     size_t batch)
{
	assert(step < gf_order_steps(o, ranks, batch) && rank < ranks);
	if (o->consecutive)
		return take_rows(o, step, ranks, rank, batch);
	if (o->epoch != epoch)
		shuffle(o, epoch);
	return o->permutation + (step * (size_t)ranks + (size_t)rank) * batch;
}

void gf_order_share(size_t samples, int ranks, int rank, size_t *first, size_t *count)
{
	size_t each = samples / (size_t)ranks, over = samples % (size_t)ranks;
	size_t r = (size_t)rank;

	*first = r * each + (r < over ? r : over);
	*count = each + (r < over ? 1 : 0);
}

/* --- batches ---------------------------------------------------------------
 */

/* A batch: micro-batch `part` of a step (from 1), or number part of a test. */
struct place {
	size_t step; /* TEST: of a test; 0: nothing */
	size_t part;
};
#define TEST SIZE_MAX

/*
 * Two batches: `front` is the caller's, `back` the threads'. `want` is the batch to be fetched into
 * back, `have` the batch that back holds whole; the threads work while they differ. A thread takes
 * some samples after the other: `next` is the first that nobody has taken, `fetched` counts those
 * that are there, and the first of all finds out which samples they are (`slice`). `order`,
 * `indices` and `back` belong to the threads, or to the caller if no thread could be started. The
 * first of a batch's samples that `failed` leaves its error.
 */
struct gf_loader {
	struct gf_loader_config config;
	struct gf_order order;
	size_t steps_per_epoch;
	struct gf_batch batches[GF_LOADER_BATCHES];
	struct gf_batch *front, *back;

	pthread_t *threads;
	size_t nthreads;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct place want, have;
	const size_t *slice; /* of the batch wanted; NULL: not yet known */
	size_t *indices;     /* of a test's batch */
	size_t next, fetched;
	size_t failed; /* of the batch wanted; SIZE_MAX: none */
	struct gf_error error;
	int rc;
	bool stop;
};

static bool same(struct place a, struct place b)
{
	return a.step == b.step && a.part == b.part;
}

static size_t epoch_of(const struct gf_loader *l, struct place at)
{
	return (at.step - 1) / l->steps_per_epoch;
}

size_t gf_loader_tested(const struct gf_dataset *data, size_t most)
{
	const size_t all = data->count[GF_PART_TEST];

	return most && most < all ? most : all;
}

/* Samples of a batch. */
static size_t count_of(const struct gf_loader *l, struct place at)
{
	const struct gf_loader_config *k = &l->config;
	const size_t skip = at.part * k->batch;
	size_t first, share;

	if (at.step != TEST)
		return k->batch;
	gf_order_share(gf_loader_tested(k->data, k->test_samples), k->ranks, k->rank, &first,
		       &share);
	if (skip >= share)
		return 0;
	return share - skip < k->batch ? share - skip : k->batch;
}

/* Exact whatever the run has done so far: the seed decides the order and the changes, this only
 * fetches. */
static const size_t *find(struct gf_loader *l, struct place at)
{
	const struct gf_loader_config *k = &l->config;
	const size_t share = k->batch * k->accumulate;
	const size_t skip = at.part * k->batch;
	size_t first, all, i;

	if (at.step == TEST) {
		const size_t tested = gf_loader_tested(k->data, k->test_samples);

		gf_order_share(tested, k->ranks, k->rank, &first, &all);
		for (i = 0; i < count_of(l, at); i++)
			l->indices[i] = (first + skip + i) * k->data->count[GF_PART_TEST] / tested;
		return l->indices;
	}
	l->back->first_sample = ((at.step - 1) * (size_t)k->ranks + (size_t)k->rank) * share + skip;
	return gf_order_slice(&l->order, epoch_of(l, at), (at.step - 1) % l->steps_per_epoch,
			      k->ranks, k->rank, share) +
	       skip;
}

/* Samples of a batch, from `first` on. */
struct share {
	struct place at;
	const size_t *slice; /* the batch's */
	size_t first, count;
	float *room; /* of one sample, for augmenting */
	int rc;      /* of the first that failed, and which it is */
	size_t failed;
	struct gf_error error;
};

static void fetch(struct gf_loader *l, struct share *s)
{
	const struct gf_loader_config *k = &l->config;
	const struct gf_dataset *d = k->data;
	const size_t elems = gf_shape_elems(&d->shape);
	const bool test = s->at.step == TEST;

	for (size_t i = s->first; i < s->first + s->count && !s->rc; i++) {
		const size_t epoch = test ? 0 : epoch_of(l, s->at);
		const struct gf_augmented which = {k->seed, epoch, s->slice[i], s->room};
		float *values = l->back->values + i * elems;
		int32_t *labels = l->back->labels + i * d->positions;

		s->rc = test ? gf_dataset_batch(d, GF_PART_TEST, &which.index, 1, values, labels,
						&s->error)
			     : gf_augment_sample(&k->augment, d, &which, values, labels, &s->error);
		s->failed = i;
		if (!s->rc)
			gf_mask_sample(d, test ? GF_PART_TEST : GF_PART_TRAIN, k->seed, epoch,
				       which.index, values, labels);
	}
}

/* The same error whichever thread comes first. */
static void note(struct gf_loader *l, const struct share *s)
{
	if (!s->rc || s->failed >= l->failed)
		return;
	l->rc = s->rc;
	l->failed = s->failed;
	l->error = s->error;
}

static float *new_room(const struct gf_loader *l)
{
	return gf_xcalloc(gf_shape_elems(&l->config.data->shape), sizeof(float));
}

/* Fetches some of the batch that is wanted; the lock is held, but not meanwhile. Several shares to
 * a thread, as some take longer. */
static void fetch_some(struct gf_loader *l, float *room)
{
	const size_t batch = count_of(l, l->want);
	const size_t shares = l->nthreads > 1 ? 4 * l->nthreads : 1;
	const size_t most = (batch + shares - 1) / shares;
	struct share s = {.at = l->want, .first = l->next, .room = room};

	if (!l->slice)
		l->slice = find(l, s.at);
	s.slice = l->slice;
	s.count = batch - s.first < most ? batch - s.first : most;
	l->next += s.count;
	pthread_mutex_unlock(&l->lock);
	fetch(l, &s);
	pthread_mutex_lock(&l->lock);
	note(l, &s);
	l->fetched += s.count;
	if (l->fetched < batch)
		return;
	l->have = s.at;
	pthread_cond_broadcast(&l->changed);
}

static void *run(void *arg)
{
	struct gf_loader *l = arg;
	GF_FREED float *room = new_room(l);

	pthread_mutex_lock(&l->lock);
	while (!l->stop)
		if (same(l->want, l->have) || l->next == count_of(l, l->want)) /* all given out */
			pthread_cond_wait(&l->changed, &l->lock);
		else
			fetch_some(l, room);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void make_batches(struct gf_loader *l)
{
	const struct gf_loader_config *k = &l->config;
	const struct gf_dataset *d = k->data;

	for (size_t i = 0; i < GF_LOADER_BATCHES; i++) {
		struct gf_batch *b = &l->batches[i];

		if (k->room) {
			*b = k->room[i];
			continue;
		}
		b->values = gf_xcalloc(k->batch * gf_shape_elems(&d->shape), sizeof(*b->values));
		b->labels = gf_xcalloc(k->batch * d->positions, sizeof(*b->labels));
	}
	l->front = &l->batches[0];
	l->back = &l->batches[1];
}

struct gf_loader *gf_loader_new(const struct gf_loader_config *config)
{
	struct gf_loader *l = gf_xcalloc(1, sizeof(*l));
	const struct gf_dataset *d = config->data;
	const size_t wanted = config->threads ? config->threads : 1;

	l->config = *config;
	gf_order_init(&l->order, d->count[GF_PART_TRAIN], config->seed, d->consecutive);
	l->steps_per_epoch =
		gf_order_steps(&l->order, config->ranks, config->batch * config->accumulate);
	l->indices = gf_xcalloc(config->batch, sizeof(*l->indices));
	make_batches(l);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	l->threads = gf_xcalloc(wanted, sizeof(*l->threads));
	pthread_mutex_lock(&l->lock);
	while (l->nthreads < wanted && pthread_create(&l->threads[l->nthreads], NULL, run, l) == 0)
		l->nthreads++;
	pthread_mutex_unlock(&l->lock);
	return l;
}

void gf_loader_free(struct gf_loader *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	for (size_t i = 0; i < l->nthreads; i++)
		pthread_join(l->threads[i], NULL);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	gf_order_release(&l->order);
	for (size_t i = 0; i < GF_LOADER_BATCHES && !l->config.room; i++) {
		free(l->batches[i].values);
		free(l->batches[i].labels);
	}
	free(l->indices);
	free(l->threads);
	free(l);
}

static void want(struct gf_loader *l, struct place at)
{
	l->want = at;
	l->slice = NULL;
	l->next = l->fetched = 0;
	l->failed = SIZE_MAX;
	l->rc = 0;
}

/* Asks for a batch in back, if there is one; the lock is held. */
static void ask(struct gf_loader *l, struct place at)
{
	/* one that is being fetched is let be until it is whole */
	while (!same(l->want, l->have))
		pthread_cond_wait(&l->changed, &l->lock);
	want(l, at);
	if (!count_of(l, at))
		l->want = l->have = (struct place){0};
	pthread_cond_broadcast(&l->changed);
}

/* Without threads. */
static void fetch_here(struct gf_loader *l, struct place at)
{
	struct share s = {.at = at, .slice = find(l, at), .room = new_room(l)};

	s.count = count_of(l, at);
	want(l, at);
	fetch(l, &s);
	note(l, &s);
	free(s.room);
}

bool gf_loader_ready(struct gf_loader *l, size_t step, size_t part)
{
	const struct place at = {step, part};
	bool ready;

	pthread_mutex_lock(&l->lock);
	ready = same(l->want, at) && same(l->have, at);
	pthread_mutex_unlock(&l->lock);
	return ready;
}

/* A batch that is there becomes the caller's. */
static int hand_over(struct gf_loader *l, const struct gf_batch **batch, struct gf_error *err)
{
	struct gf_batch *front = l->front;
	int rc = l->rc;

	if (rc && err)
		*err = l->error;
	l->front = l->back;
	l->back = front;
	*batch = l->front;
	return rc;
}

static int take(struct gf_loader *l, struct place at, struct place next,
		const struct gf_batch **batch, struct gf_error *err)
{
	int rc;

	if (!l->nthreads) {
		fetch_here(l, at);
		return hand_over(l, batch, err);
	}
	pthread_mutex_lock(&l->lock);
	if (!same(l->want, at))
		ask(l, at);
	while (!same(l->have, at))
		pthread_cond_wait(&l->changed, &l->lock);
	rc = hand_over(l, batch, err);
	ask(l, next);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int gf_loader_take(struct gf_loader *l, size_t step, size_t part, const struct gf_batch **batch,
		   struct gf_error *err)
{
	const bool last = part + 1 == l->config.accumulate;

	return take(l, (struct place){step, part},
		    last ? (struct place){step + 1, 0} : (struct place){step, part + 1}, batch,
		    err);
}

int gf_loader_take_test(struct gf_loader *l, size_t number, const struct gf_batch **batch,
			size_t *count, struct gf_error *err)
{
	const struct place at = {TEST, number};
	*count = count_of(l, at);
	return *count ? take(l, at, (struct place){TEST, number + 1}, batch, err) : 0;
}
