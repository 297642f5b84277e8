/* SPDX-License-Identifier: BSD-3-Clause */
/* What libraries can be told (documents/library_tuning.h), and what gf-plan tells them
 * (settings/emit.h). */
#include "base/array.h"
#include "base/text.h"
#include "documents/library_tuning.h"
#include "settings/emit.h"
#include "test.h"

static void test_words(void)
{
	static const struct {
		const char *library, *text, *back; /* NULL: refused */
	} cases[] = {
		{"Open MPI 4.1.4", "default", "default"},
		{"Open MPI 4.1.4", "RING", "ring"},
		{"Open MPI 4.1.4", "segmented_ring.65536", "segmented_ring.64K"},
		{"Open MPI 4.1.4", "segmented_ring.1M", "segmented_ring.1M"},
		{"Open MPI 4.1.4", "segmented_ring.1000", "segmented_ring.1000"},
		{"Open MPI 4.1.4", "ring.64K", NULL},
		{"Open MPI 4.1.4", "carrier", NULL},
		{"Open MPI 4.1.4", "", NULL},
		{"NCCL 2.28.9", "Ring.Simple", "ring.simple"},
		{"NCCL 2.28.9", "nvls_tree.ll128.16", "nvls_tree.ll128.16"},
		{"NCCL 2.28.9", "CollNetDirect.Simple", "collnet_direct.simple"},
		{"NCCL 2.28.9", "nvls_.simple.4", "nvls.simple.4"},
		{"NCCL 2.28.9", "nvlstre.simple", NULL},
		{"NCCL 2.28.9", "ring", NULL},
		{"NCCL 2.28.9", "ring.simple.0", NULL},
		{"NCCL 2.28.9", "ring.simple.8.8", NULL},
		{"NCCL 2.28.9", "ring.64K", NULL},
	};
	char text[GF_TUNING_TEXT];
	struct gf_tuning t, again;
	struct gf_error err;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_dialect *d = gf_dialect_of(cases[i].library);
		int rc = gf_tuning_read(d, cases[i].text, &t, &err);

		EXPECT((rc == 0) == (cases[i].back != NULL), "%s: %d", cases[i].text, rc);
		if (rc)
			continue;
		gf_tuning_text(&t, text);
		EXPECT(!strcmp(text, cases[i].back), "%s: %s", cases[i].text, text);
		EXPECT(gf_tuning_read(d, text, &again, &err) == 0 && gf_tuning_same(&t, &again),
		       "%s", text);
	}
	EXPECT(!gf_dialect_of("MPICH 4.0.2") && !gf_dialect_of(NULL), "MPICH");
}

/* Each variant of a walk once, and as its words say. */
static void test_walk(void)
{
	static const size_t want[] = {12, 71, 71};
	char text[GF_TUNING_TEXT];
	struct gf_tuning t, other;
	struct gf_error err;
	size_t i, k, d;

	for (d = 0; gf_dialects[d].name; d++) {
		for (i = 0; gf_tuning_at(&gf_dialects[d], i, &t); i++) {
			EXPECT((i == 0) == !t.algorithm, "%zu", i);
			EXPECT(gf_tuning_read(&gf_dialects[d], gf_tuning_text(&t, text), &other,
					      &err) == 0 &&
				       gf_tuning_same(&t, &other),
			       "%s", text);
			for (k = 0; k < i; k++)
				EXPECT(gf_tuning_at(&gf_dialects[d], k, &other) &&
					       !gf_tuning_same(&t, &other),
				       "%zu, %zu: %s", k, i, text);
		}
		EXPECT(i == want[d], "%s: %zu", gf_dialects[d].name, i);
	}
}

/* --- picks ---------------------------------------------------------------- */

#define SIZES 4
static size_t sizes[SIZES] = {4096, 16384, 65536, 262144};

static struct gf_allreduce_cost variant(const char *name, double *time_s, double *spread_s)
{
	return (struct gf_allreduce_cost){
		.algorithm = (char *)name,
		.startup_s = 1e-6,
		.per_byte_s = 1e-9,
		.fit = {.npoints = SIZES,
			.size_bytes = sizes,
			.time_s = time_s,
			.spread_s = spread_s},
	};
}

/* The default takes 100 us at each size, and spreads by `spread`; two others take these times. */
static void test_picks(void)
{
	static double even[SIZES] = {1e-4, 1e-4, 1e-4, 1e-4};
	static double none[SIZES];
	static struct {
		const char *of;
		double ring[SIZES], tree[SIZES], spread;
		bool always;
		int rc;
		const char *want; /* from:variant, ... */
	} cases[] = {
		{"one wins everywhere",
		 {5e-5, 5e-5, 5e-5, 5e-5},
		 {1, 1, 1, 1},
		 0,
		 false,
		 0,
		 "0:default 4096:ring"},
		{"a gain of 2 % is none",
		 {9.8e-5, 9.8e-5, 9.8e-5, 9.8e-5},
		 {1, 1, 1, 1},
		 0,
		 false,
		 1,
		 ""},
		{"nor is one within the spread",
		 {8e-5, 8e-5, 8e-5, 8e-5},
		 {1, 1, 1, 1},
		 6e-5,
		 false,
		 1,
		 ""},
		{"halfway between sizes",
		 {5e-5, 5e-5, 1, 1},
		 {1, 1, 1, 5e-5},
		 0,
		 false,
		 0,
		 "0:default 4096:ring 32768:default 131072:rabenseifner"},
		{"one stays where another is no better",
		 {5e-5, 5e-5, 5e-5, 5e-5},
		 {1, 4.9e-5, 4e-5, 6e-5},
		 0,
		 false,
		 0,
		 "0:default 4096:ring 32768:rabenseifner 131072:ring"},
		{"all sizes are told",
		 {5e-5, 5e-5, 1, 1},
		 {1, 1, 6e-5, 6e-5},
		 0,
		 true,
		 0,
		 "0:ring 32768:rabenseifner"},
		{"the default would be lost",
		 {5e-5, 5e-5, 2e-4, 1},
		 {1, 1, 1, 6e-5},
		 0,
		 true,
		 1,
		 ""},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		double spread[SIZES] = {cases[i].spread, cases[i].spread, cases[i].spread,
					cases[i].spread};
		struct gf_allreduce_cost all[] = {
			variant("ring", cases[i].ring, none),
			variant("default", even, spread),
			variant("rabenseifner", cases[i].tree, none),
		};
		const struct gf_network net = {
			.ranks = 4,
			.library = (char *)"Open MPI 4.1.4",
			.variants = all,
			.nvariants = GF_ARRAY_LENGTH(all),
		};
		const struct gf_picks_wish wish = {"Open MPI", cases[i].always, false};
		struct gf_text got = {0};
		struct gf_picks p = {0};
		struct gf_error err;
		int rc = gf_picks_make(&net, &wish, &p, &err);

		EXPECT(rc == cases[i].rc, "%s: %d", cases[i].of, rc);
		for (k = 0; k < p.count; k++)
			gf_text_addf(&got, "%s%zu:%s", k ? " " : "", p.list[k].from_bytes,
				     p.list[k].cost->algorithm);
		EXPECT(!strcmp(got.data ? got.data : "", cases[i].want), "%s: %s", cases[i].of,
		       got.data);
		gf_text_release(&got);
		gf_picks_release(&p);
	}
}

int main(void)
{
	test_words();
	test_walk();
	test_picks();
	return TEST_END();
}
