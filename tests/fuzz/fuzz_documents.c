/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broken documents of every format through every reader. Nothing may crash,
 * every refusal is one line that names the source, and what a reader accepts
 * is written, and reads back to the same bytes.
 *
 *	fuzz_documents [--seconds N] [--seed N]
 *
 * The documents are made from the valid ones in the source tree by a seeded
 * generator: the same seed tries the same documents in the same order. Seconds
 * only say when to stop.
 */
#include "doc/stream.h"
#include "mutate.h"

/* --- what must hold ------------------------------------------------------ */

static void fail(const char *what, const struct gf_text *t)
{
	printf("%s:\n%.*s\n", what, (int)t->length, t->data ? t->data : "");
	exit(1);
}

static void expect_same(const char *written, const struct gf_text *from)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};
	char *again = NULL;

	if (gf_documents_add_text(&d, written, strlen(written), "w", &err)) {
		printf("%s\n", err.text);
		fail("what was written is refused", from);
	}
	if (d.topology)
		again = gf_topology_write(d.topology);
	else if (d.profile)
		again = gf_profile_write(d.profile);
	else if (d.plan)
		again = gf_plan_write(d.plan);
	else if (d.model)
		again = gf_model_write(d.model);
	else if (d.training)
		again = gf_training_write(d.training);
	if (!again || strcmp(again, written) != 0)
		fail("what was written reads back to something else", from);
	free(again);
	gf_documents_release(&d);
}

/* Walks what was read as its users do. */
static void use_plan(const struct gf_plan *p)
{
	size_t i, sum = 0;

	for (i = 0; i < p->nmessages; i++)
		sum += gf_plan_message_bytes(p, i);
	if (p->model && sum != gf_model_profile_bytes(p->model))
		fail("the messages are not the model", &(struct gf_text){0});
}

static void use_network(const struct gf_network *net)
{
	static const size_t sizes[] = {0, 1, 1000, 1 << 20, (size_t)1 << 61};
	size_t i, k;
	int n;

	for (i = 0; net && i < net->nallreduce; i++)
		for (k = 0; k < GF_ARRAY_LENGTH(sizes); k++)
			for (n = 1; n < 5; n++)
				if (!(gf_contention_gamma(
					      &net->allreduce[i].contention,
					      sizes[k], n) >= 1))
					fail("gamma below 1",
					     &(struct gf_text){0});
}

static void check_accepted(const struct gf_documents *d,
			   const struct gf_text *from)
{
	char *written;

	if (d->topology) {
		written = gf_topology_write(d->topology);
		expect_same(written, from);
		free(written);
	}
	if (d->profile) {
		use_network(d->profile->network);
		written = gf_profile_write(d->profile);
		expect_same(written, from);
		free(written);
	}
	if (d->plan) {
		use_plan(d->plan);
		use_network(d->plan->network);
		written = gf_plan_write(d->plan);
		expect_same(written, from);
		free(written);
	}
	if (d->model) {
		free(gf_model_generation_order(d->model));
		written = gf_model_write(d->model);
		expect_same(written, from);
		free(written);
	}
	if (d->training) {
		written = gf_training_write(d->training);
		expect_same(written, from);
		free(written);
	}
}

static int try_one(const struct seeds *s, struct gf_rng *rng)
{
	const char *seed = s->texts[gf_rng_below(rng, s->count)];
	size_t rounds = gf_rng_below(rng, 4);
	struct gf_documents d = {0};
	struct gf_error err = {""};
	struct gf_text t = {0};
	int rc;

	gf_text_add(&t, seed, strlen(seed));
	while (rounds--)
		mutate(&t, s, rng);
	rc = gf_documents_add_text(&d, t.data, t.length, "f", &err);
	if (rc && (strncmp(err.text, "f", 1) != 0 || strchr(err.text, '\n')))
		fail("a message that is not one line about f", &t);
	if (!rc)
		check_accepted(&d, &t);
	gf_documents_release(&d);
	gf_text_release(&t);
	return !rc;
}

int main(int argc, char **argv)
{
	struct seeds seeds = {0};

	load_seeds(&seeds, "tests/data/valid");
	load_seeds(&seeds, "share/models");
	load_seeds(&seeds, "share/topologies");
	return fuzz(argc, argv, &seeds, try_one);
}
