/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "../gpu/fake.h"
#include "../gpu/fake_net.h"
#include "base/array.h"
#include "base/heap.h"
#include "ranks.h"
#include "selections.h"
#include "trainer/options.h"

/* Where ranks compute, on machines of the test's. */
#define RANKS 3

static struct fake_world *world;
static int ngpus;
static int blind; /* 1 + the rank that sees no GPU */
static _Thread_local int self;

static int count(struct gf_error *why)
{
	if (blind == self + 1) {
		gf_error_set(why, -ENOTSUP, "no GPU that CUDA can use: none");
		return 0;
	}
	return ngpus;
}

static int open_gpu(int index, struct gf_gpu **gpu, struct gf_error *err)
{
	(void)err;
	*gpu = fake_gpu(world, index);
	return 0;
}

/* Ranks may share one: it has its name before they begin. */
static void name_gpus(void)
{
	struct gf_gpu *gpu;
	int i;

	for (i = 0; i < RANKS; i++) {
		gpu = fake_gpu(world, i);
		gpu->index = i;
		snprintf(gpu->name, sizeof(gpu->name), "fake %d", i);
	}
}

static int have_nccl(const struct gf_nccl_ops **ops, struct gf_error *err)
{
	(void)err;
	*ops = fake_nccl();
	return 0;
}

static int no_nccl(const struct gf_nccl_ops **ops, struct gf_error *err)
{
	(void)ops;
	return gf_error_set(err, -ENOTSUP, "no NCCL here");
}

static const struct {
	const char *label, *device;
	int gpus, blind;
	bool no_backend;
	int rc;
	const char *text; /* of the error */
	int index[RANKS]; /* that are taken; -1: the host */
	const char *note; /* begins rank 0's */
	enum gf_train_transport transport;
	const char *by_host;
	bool no_nccl, by_nccl;
} cases[] = {
	{"one each", "cuda", 3, .index = {0, 1, 2}, .by_nccl = true},
	{"no NCCL", "cuda", 3, .index = {0, 1, 2}, .no_nccl = true,
	 .note = "gradients go by the host: rank 0: no NCCL here"},
	{"no NCCL, asked for", "auto", 3, .rc = -ENODEV, .no_nccl = true,
	 .transport = GF_TRANSPORT_NCCL, .text = "--transport nccl: rank 0: no NCCL here"},
	{"told so", "cuda", 3, .index = {0, 1, 2}, .transport = GF_TRANSPORT_MPI},
	{"cannot", "cuda", 3, .index = {0, 1, 2}, .by_host = "why not",
	 .note = "gradients go by the host: why not"},
	{"cannot, asked for", "cuda", 3, .rc = -ENOTSUP, .by_host = "why not",
	 .transport = GF_TRANSPORT_NCCL, .text = "--transport nccl: why not"},
	{"on the host", "cpu", 3, .rc = -EINVAL, .transport = GF_TRANSPORT_NCCL,
	 .text = "--transport nccl: it moves gradients of GPUs, and --device is cpu"},
	{"in turn", "cuda", 2, .index = {0, 1, 0}, .note = "2 ranks share GPU 0 (fake 0)"},
	{"one for all", "auto", 1, .index = {0, 0, 0}, .note = "3 ranks share GPU 0"},
	{"by number", "cuda:1", 2, .index = {1, 1, 1}, .note = "3 ranks share GPU 1"},
	{"no such", "cuda:2", 2, .rc = -ENODEV,
	 .text = "rank 0: --device cuda:2: this host has 2 GPUs"},
	{"one is blind", "cuda", 2, 2, .rc = -ENODEV,
	 .text = "rank 1: no GPU that CUDA can use: none"},
	{"all to the host", "auto", 2, 2, .index = {-1, -1, -1},
	 .note = "computing on the CPU: rank 1: no GPU that CUDA can use"},
	{"no cuDNN", "cuda", 2, .no_backend = true, .rc = -ENODEV,
	 .text = "rank 0: this build computes nothing on GPUs: it was made without cuDNN"},
	{"as asked", "cpu", 2, .index = {-1, -1, -1}},
	{"by name", "ref", 2, .index = {-1, -1, -1}},
};

static void body(struct gf_comm *comm, void *ctx)
{
	const size_t i = *(size_t *)ctx;
	const struct gf_train_devices devices = {
		{count, open_gpu, cases[i].no_nccl ? no_nccl : have_nccl},
		cases[i].no_backend ? NULL : &fake_backend};
	const struct gf_train_wish wish = {.device = cases[i].device,
					   .threads = 1,
					   .transport = cases[i].transport,
					   .by_host = cases[i].by_host,
					   .devices = &devices};
	const int want = cases[i].index[comm->rank];
	struct gf_train_place place;
	struct gf_error err = {""};
	int rc;

	self = comm->rank;
	rc = gf_train_place_open(comm, &wish, &place, &err);
	EXPECT(rc == cases[i].rc, "%s: got %d, %s", cases[i].label, rc, err.text);
	if (cases[i].text)
		EXPECT_TEXT(err.text, cases[i].text);
	if (!rc && !cases[i].rc) {
		EXPECT(want < 0 ? !place.at.gpu && !place.backend->on_device
				: place.at.gpu && place.at.gpu->index == want &&
					  place.backend == &fake_backend,
		       "%s: rank %d", cases[i].label, comm->rank);
		EXPECT((place.at.nccl != NULL) == cases[i].by_nccl, "%s: %s", cases[i].label,
		       place.at.nccl ? "NCCL" : "no NCCL");
	}
	if (comm->rank == 0 && cases[i].note)
		EXPECT(place.note && strncmp(place.note, cases[i].note, strlen(cases[i].note)) == 0,
		       "%s: %s", cases[i].label, place.note ? place.note : "no note");
	gf_train_place_close(&place);
}

static const struct {
	const char *selection, *optimizer;
	const char *text; /* why not by NCCL, which is asked for; NULL: it is */
} choices[] = {
	{"pieces", "sgd", NULL},
	{"pieces", "lars",
	 "--transport nccl: optimizer \"lars\" of some of the gradients is not computed on GPUs"},
	{"merged", "lars", NULL},
	{"momentum", "sgd", "goes by the host"},
	{"plain", "lars", NULL},
};

/* Selections that are not made where gradients lie. */
static void take(struct gf_comm *comm, void *ctx)
{
	const struct gf_train_devices devices = {{count, open_gpu, have_nccl}, &fake_backend};
	struct gf_train_wish wish = {.device = "cuda:0", .devices = &devices};
	struct gf_plan plan = {.staleness = 2};
	struct gf_train_config config = {.comm = comm, .plan = &plan};
	struct gf_train_place place;
	struct gf_error err = {""};
	size_t i;
	int rc;

	(void)ctx;
	self = comm->rank;
	for (i = 0; i < GF_ARRAY_LENGTH(choices); i++) {
		plan.selection = test_selection(choices[i].selection);
		config.training.optimizer = (char *)choices[i].optimizer;
		wish.transport = GF_TRANSPORT_NCCL;
		rc = gf_train_place_take(&config, &wish, &place, &err);
		EXPECT(choices[i].text ? rc == -ENOTSUP : !rc && place.at.nccl, "%zu: %d, %s", i,
		       rc, err.text);
		if (choices[i].text)
			EXPECT(strstr(err.text, choices[i].text), "%zu: %s", i, err.text);
		if (!rc)
			gf_train_place_close(&place);
		wish.transport = GF_TRANSPORT_MPI;
		EXPECT(!gf_train_place_take(&config, &wish, &place, &err) && !place.at.nccl &&
			       !place.note,
		       "%zu: %s", i, err.text);
		gf_train_place_close(&place);
	}
}

static void test_names(void)
{
	static const struct {
		const char *device;
		int rc;
	} names[] = {
		{"auto", 0},          {"cpu", 0},         {"ref", 0},         {"cuda", 0},
		{"cuda:0", 0},        {"cuda:12", 0},     {"cuda:", -EINVAL}, {"cuda:-1", -EINVAL},
		{"cuda:x", -EINVAL},  {"cuda0", -EINVAL}, {"gpu", -EINVAL},   {"", -EINVAL},
		{"cuda:1 ", -EINVAL},
	};
	struct gf_error err = {""};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(names); i++)
		EXPECT(gf_train_place_check(names[i].device, &err) == names[i].rc,
		       "\"%s\": want %d", names[i].device, names[i].rc);
	EXPECT_TEXT(err.text, "--device: want auto, cpu, cuda, cuda:N or a backend of this build, "
			      "got \"cuda:1 \"");
}

int main(void)
{
	static const struct fake_faults none;
	size_t i;

	watchdog(60);
	test_names();
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		world = fake_world_new(RANKS, 4, 1, &none);
		name_gpus();
		ngpus = cases[i].gpus;
		blind = cases[i].blind;
		on_ranks(RANKS, body, &i);
		fake_world_free(world);
	}
	world = fake_world_new(RANKS, 4, 1, &none);
	name_gpus();
	ngpus = 1;
	blind = 0;
	on_ranks(1, take, NULL);
	fake_world_free(world);
	return TEST_END();
}
