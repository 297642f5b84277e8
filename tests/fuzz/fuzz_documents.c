/* SPDX-License-Identifier: BSD-3-Clause */
/* Broken documents of every format through every reader: every refusal is one line that names the
 * source, and what a reader accepts is written, and reads back to the same bytes. */
#include "documents/stream.h"
#include "harness.h"

/* --- what must hold ------------------------------------------------------ */

static void expect_same(const char *written)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};
	char *again = NULL;

	if (gf_documents_add_text(&d, written, strlen(written), "w", &err))
		harness_fail("what was written is refused", err.text);
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
		harness_fail("it reads back to something else", written);
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
		harness_fail("the messages are not the model", p->policy);
}

static void use_network(const struct gf_network *net)
{
	static const size_t sizes[] = {0, 1, 1000, 1 << 20, (size_t)1 << 61};
	size_t i, k;
	int n;

	for (i = 0; net && i < net->nallreduce; i++)
		for (k = 0; k < GF_ARRAY_LENGTH(sizes); k++)
			for (n = 1; n < 5; n++)
				if (!(gf_contention_gamma(&net->allreduce[i].contention, sizes[k],
							  n) >= 1))
					harness_fail("contention", "gamma below 1");
}

static void check_accepted(const struct gf_documents *d)
{
	char *written;

	if (d->topology) {
		written = gf_topology_write(d->topology);
		expect_same(written);
		free(written);
	}
	if (d->profile) {
		use_network(d->profile->network);
		written = gf_profile_write(d->profile);
		expect_same(written);
		free(written);
	}
	if (d->plan) {
		use_plan(d->plan);
		use_network(d->plan->network);
		written = gf_plan_write(d->plan);
		expect_same(written);
		free(written);
	}
	if (d->model) {
		free(gf_model_generation_order(d->model));
		written = gf_model_write(d->model);
		expect_same(written);
		free(written);
	}
	if (d->training) {
		written = gf_training_write(d->training);
		expect_same(written);
		free(written);
	}
}

static bool try_documents(const char *data, size_t size, struct gf_rng *rng)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};
	int rc = gf_documents_add_text(&d, data, size, "f", &err);

	(void)rng;
	if (rc)
		harness_expect_line(&err, "f");
	else
		check_accepted(&d);
	gf_documents_release(&d);
	return !rc;
}

static const char *const seeds[] = {
	"tests/data/valid/*.json",
	"share/models/*.json",
	"share/topologies/*.json",
	NULL,
};

const struct harness harness = {.seeds = seeds, .try = try_documents};
