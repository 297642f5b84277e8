/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/loader.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "data/order.h"

struct place {
	size_t step, part;
};

/*
 * Two batches: `front` is the caller's, `back` the thread's. `want` is the
 * batch to be fetched into back, `have` the batch that back holds whole; the
 * thread works while they differ. `order` and `back` belong to the thread, or
 * to the caller if no thread could be started.
 */
struct gf_loader {
	struct gf_loader_config config;
	struct gf_order order;
	size_t steps_per_epoch;
	struct gf_batch batches[2];
	struct gf_batch *front, *back;
	float *room; /* of one sample, for augmenting */

	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct place want, have; /* step 0: nothing */
	bool stop;
};

static bool same(struct place a, struct place b)
{
	return a.step == b.step && a.part == b.part;
}

/* Exact whatever the run has done so far: the seed decides the order and the
 * changes, this only fetches. */
static void fetch(struct gf_loader *l, struct place at)
{
	const struct gf_loader_config *k = &l->config;
	const size_t elems = gf_shape_elems(&k->data->shape);
	size_t share = k->batch * k->accumulate, skip = at.part * k->batch, i;
	size_t epoch = (at.step - 1) / l->steps_per_epoch;
	const size_t *slice = gf_order_slice(&l->order, epoch,
					     (at.step - 1) % l->steps_per_epoch,
					     k->ranks, k->rank, share) +
			      skip;

	gf_dataset_batch(k->data, GF_PART_TRAIN, slice, k->batch,
			 l->back->values, l->back->labels);
	for (i = 0; i < k->batch; i++)
		gf_augment_sample(&k->augment, k->data, k->seed, epoch,
				  slice[i], l->back->values + i * elems,
				  l->room);
	l->back->first_sample =
		((at.step - 1) * (size_t)k->ranks + (size_t)k->rank) * share +
		skip;
}

static void *run(void *arg)
{
	struct gf_loader *l = arg;
	struct place at;

	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		if (same(l->want, l->have)) {
			pthread_cond_wait(&l->changed, &l->lock);
			continue;
		}
		at = l->want;
		pthread_mutex_unlock(&l->lock);
		fetch(l, at);
		pthread_mutex_lock(&l->lock);
		l->have = at;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

struct gf_loader *gf_loader_new(const struct gf_loader_config *config)
{
	struct gf_loader *l = gf_xcalloc(1, sizeof(*l));
	const struct gf_dataset *d = config->data;
	size_t elems = gf_shape_elems(&d->shape), i;

	l->config = *config;
	gf_order_init(&l->order, d->count[GF_PART_TRAIN], config->seed,
		      d->consecutive);
	l->steps_per_epoch = gf_order_steps(&l->order, config->ranks,
					    config->batch * config->accumulate);
	for (i = 0; i < 2; i++) {
		l->batches[i].values = gf_xcalloc(
			config->batch * elems, sizeof(*l->batches[i].values));
		l->batches[i].labels =
			gf_xcalloc(config->batch * d->positions,
				   sizeof(*l->batches[i].labels));
	}
	l->front = &l->batches[0];
	l->back = &l->batches[1];
	l->room = gf_xcalloc(elems, sizeof(*l->room));
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	l->threaded = pthread_create(&l->thread, NULL, run, l) == 0;
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
	if (l->threaded)
		pthread_join(l->thread, NULL);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	gf_order_release(&l->order);
	for (i = 0; i < 2; i++) {
		free(l->batches[i].values);
		free(l->batches[i].labels);
	}
	free(l->room);
	free(l);
}

/* Asks for a batch in back; the lock is held. */
static void ask(struct gf_loader *l, struct place at)
{
	/* one that is being fetched is let be until it is whole */
	while (!same(l->want, l->have))
		pthread_cond_wait(&l->changed, &l->lock);
	l->want = at;
	pthread_cond_broadcast(&l->changed);
}

static void swap(struct gf_loader *l)
{
	struct gf_batch *front = l->front;

	l->front = l->back;
	l->back = front;
}

const struct gf_batch *gf_loader_take(struct gf_loader *l, size_t step,
				      size_t part)
{
	struct place at = {step, part}, next = {step, part + 1};

	if (next.part == l->config.accumulate)
		next = (struct place){step + 1, 0};
	if (!l->threaded) {
		fetch(l, at);
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
