/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/loader.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/heap.h"
#include "data/mask.h"
#include "data/order.h"

struct place {
	size_t step, part;
};

/*
 * Two batches: `front` is the caller's, `back` the threads'. `want` is the
 * batch to be fetched into back, `have` the batch that back holds whole; the
 * threads work while they differ. A thread takes some samples after the other:
 * `next` is the first that nobody has taken, `fetched` counts those that are
 * there, and the first of all finds out which samples they are (`slice`).
 * `order` and `back` belong to the threads, or to the caller if no thread could
 * be started.
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
	struct place want, have; /* step 0: nothing */
	const size_t *slice;     /* of the batch wanted; NULL: not yet known */
	size_t next, fetched;
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

/* Exact whatever the run has done so far: the seed decides the order and the
 * changes, this only fetches. */
static const size_t *find(struct gf_loader *l, struct place at)
{
	const struct gf_loader_config *k = &l->config;
	const size_t share = k->batch * k->accumulate;
	const size_t skip = at.part * k->batch;

	l->back->first_sample =
		((at.step - 1) * (size_t)k->ranks + (size_t)k->rank) * share +
		skip;
	return gf_order_slice(&l->order, epoch_of(l, at),
			      (at.step - 1) % l->steps_per_epoch, k->ranks,
			      k->rank, share) +
	       skip;
}

/* room: of one sample, for augmenting */
static void fetch(struct gf_loader *l, const size_t *slice, size_t epoch,
		  size_t first, size_t count, float *room)
{
	const struct gf_loader_config *k = &l->config;
	const size_t elems = gf_shape_elems(&k->data->shape);
	const size_t positions = k->data->positions;
	float *values = l->back->values + first * elems;
	int32_t *labels = l->back->labels + first * positions;
	size_t i;

	gf_dataset_batch(k->data, GF_PART_TRAIN, slice + first, count, values,
			 labels);
	for (i = 0; i < count; i++) {
		gf_augment_sample(&k->augment, k->data, k->seed, epoch,
				  slice[first + i], values + i * elems, room);
		gf_mask_sample(k->data, GF_PART_TRAIN, k->seed, epoch,
			       slice[first + i], values + i * elems,
			       labels + i * positions);
	}
}

static float *new_room(const struct gf_loader *l)
{
	return gf_xcalloc(gf_shape_elems(&l->config.data->shape),
			  sizeof(float));
}

/* Fetches some of the batch that is wanted; the lock is held, but not
 * meanwhile. Several shares to a thread, as some take longer. */
static void fetch_some(struct gf_loader *l, float *room)
{
	const size_t batch = l->config.batch;
	const size_t shares = l->nthreads > 1 ? 4 * l->nthreads : 1;
	const size_t most = (batch + shares - 1) / shares;
	const struct place at = l->want;
	const size_t first = l->next;
	const size_t count = batch - first < most ? batch - first : most;

	if (!l->slice)
		l->slice = find(l, at);
	l->next += count;
	pthread_mutex_unlock(&l->lock);
	fetch(l, l->slice, epoch_of(l, at), first, count, room);
	pthread_mutex_lock(&l->lock);
	l->fetched += count;
	if (l->fetched < batch)
		return;
	l->have = at;
	pthread_cond_broadcast(&l->changed);
}

static void *run(void *arg)
{
	struct gf_loader *l = arg;
	float *room = new_room(l);

	pthread_mutex_lock(&l->lock);
	while (!l->stop)
		if (same(l->want, l->have) || l->next == l->config.batch)
			pthread_cond_wait(&l->changed, &l->lock);
		else
			fetch_some(l, room);
	pthread_mutex_unlock(&l->lock);
	free(room);
	return NULL;
}

static void make_batches(struct gf_loader *l)
{
	const struct gf_loader_config *k = &l->config;
	const struct gf_dataset *d = k->data;
	size_t i;

	for (i = 0; i < GF_LOADER_BATCHES; i++) {
		struct gf_batch *b = &l->batches[i];

		if (k->room) {
			*b = k->room[i];
			continue;
		}
		b->values = gf_xcalloc(k->batch * gf_shape_elems(&d->shape),
				       sizeof(*b->values));
		b->labels =
			gf_xcalloc(k->batch * d->positions, sizeof(*b->labels));
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
	gf_order_init(&l->order, d->count[GF_PART_TRAIN], config->seed,
		      d->consecutive);
	l->steps_per_epoch = gf_order_steps(&l->order, config->ranks,
					    config->batch * config->accumulate);
	make_batches(l);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	l->threads = gf_xcalloc(wanted, sizeof(*l->threads));
	pthread_mutex_lock(&l->lock);
	while (l->nthreads < wanted &&
	       pthread_create(&l->threads[l->nthreads], NULL, run, l) == 0)
		l->nthreads++;
	pthread_mutex_unlock(&l->lock);
	return l;
}

void gf_loader_free(struct gf_loader *l)
{
	size_t i;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	for (i = 0; i < l->nthreads; i++)
		pthread_join(l->threads[i], NULL);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	gf_order_release(&l->order);
	for (i = 0; i < GF_LOADER_BATCHES && !l->config.room; i++) {
		free(l->batches[i].values);
		free(l->batches[i].labels);
	}
	free(l->threads);
	free(l);
}

/* Asks for a batch in back; the lock is held. */
static void ask(struct gf_loader *l, struct place at)
{
	/* one that is being fetched is let be until it is whole */
	while (!same(l->want, l->have))
		pthread_cond_wait(&l->changed, &l->lock);
	l->want = at;
	l->slice = NULL;
	l->next = l->fetched = 0;
	pthread_cond_broadcast(&l->changed);
}

/* Without threads. */
static void fetch_here(struct gf_loader *l, struct place at)
{
	float *room = new_room(l);

	fetch(l, find(l, at), epoch_of(l, at), 0, l->config.batch, room);
	free(room);
}

static void swap(struct gf_loader *l)
{
	struct gf_batch *front = l->front;

	l->front = l->back;
	l->back = front;
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

const struct gf_batch *gf_loader_take(struct gf_loader *l, size_t step,
				      size_t part)
{
	struct place at = {step, part}, next = {step, part + 1};

	if (next.part == l->config.accumulate)
		next = (struct place){step + 1, 0};
	if (!l->nthreads) {
		fetch_here(l, at);
		swap(l);
		return l->front;
	}
	pthread_mutex_lock(&l->lock);
	if (!same(l->want, at))
		ask(l, at);
	while (!same(l->have, at))
		pthread_cond_wait(&l->changed, &l->lock);
	swap(l);
	ask(l, next);
	pthread_mutex_unlock(&l->lock);
	return l->front;
}
