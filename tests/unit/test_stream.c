/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <glob.h>

#include "base/array.h"
#include "base/digest.h"
#include "collectives/algorithm.h"
#include "documents/stream.h"
#include "doc_test.h"
#include "words.h"

#define TOPOLOGY                                                                                   \
	"{\"format\": \"gf-topology\", \"version\": 1, \"name\": \"t\", "                          \
	"\"source\": \"s\", \"levels\": []}"
#define OTHER_TOPOLOGY                                                                             \
	"{\"format\": \"gf-topology\", \"version\": 1, \"name\": \"u\", "                          \
	"\"source\": \"s\", \"levels\": []}"
#define MODEL_HALF                                                                                 \
	"{\"format\": \"gf-profile\", \"version\": 1, \"model\": {\"name\": "                      \
	"\"m\", \"forward_s\": 1, \"backward_s\": 2, \"tensors\": "                                \
	"[{\"name\": \"a\", \"count_elems\": 1, \"dtype\": \"f32\", "                              \
	"\"ready_s\": 1}]}}"
#define NETWORK_HALF                                                                               \
	"{\"format\": \"gf-profile\", \"version\": 1, \"network\": "                               \
	"{\"ranks\": 2}}"
#define OTHER_NETWORK_HALF                                                                         \
	"{\"format\": \"gf-profile\", \"version\": 1, \"network\": "                               \
	"{\"ranks\": 3}}"

/* Texts given one after the other; the last one may be refused. */
static const struct {
	const char *texts[4];
	const char *names[4];
	const char *message; /* of the last; NULL: all are taken */
	struct {
		bool topology, model, network;
	};
} cases[] = {
	{{TOPOLOGY}, {"a"}, NULL, {true, false, false}},
	{{TOPOLOGY "\n" MODEL_HALF NETWORK_HALF}, {"a"}, NULL, {true, true, true}},
	{{NETWORK_HALF, MODEL_HALF, TOPOLOGY}, {"a", "b", "c"}, NULL, {true, true, true}},
	{{TOPOLOGY, TOPOLOGY TOPOLOGY}, {"a", "b"}, NULL, {true, false, false}},
	{{TOPOLOGY, OTHER_TOPOLOGY},
	 {"a", "b"},
	 "a and b: want one gf-topology, got two that differ",
	 {true, false, false}},
	{{TOPOLOGY OTHER_TOPOLOGY},
	 {"a"},
	 "a and a: want one gf-topology, got two that differ",
	 {false, false, false}},
	{{MODEL_HALF NETWORK_HALF, OTHER_NETWORK_HALF},
	 {"a", "-"},
	 "a and standard input: want one network half, got two that differ",
	 {false, true, true}},
	/* all or nothing: the topology is good, but stays outside */
	{{MODEL_HALF, TOPOLOGY "{\"format\": \"gf-plan\"}"},
	 {"a", "b"},
	 "b: /version: want an integer, got nothing",
	 {false, true, false}},
	{{NETWORK_HALF, TOPOLOGY OTHER_NETWORK_HALF},
	 {"a", "b"},
	 "a and b: want one network half, got two that differ",
	 {false, false, true}},
	{{""}, {"a"}, "a: want a document, got nothing", {false, false, false}},
	{{" \n"}, {"-"}, "standard input: want a document, got nothing", {false, false, false}},
	{{"{\"format\": \"gf-plot\"}"},
	 {"a"},
	 "a: /format: want \"gf-topology\", \"gf-profile\", \"gf-plan\", \"gf-model\" or "
	 "\"gf-training\", got \"gf-plot\"",
	 {false, false, false}},
	{{"{\"version\": 1}"},
	 {"a"},
	 "a: /format: want \"gf-topology\", \"gf-profile\", \"gf-plan\", \"gf-model\" or "
	 "\"gf-training\", got nothing",
	 {false, false, false}},
	{{"[]"}, {"a"}, "a: want an object, got an array", {false, false, false}},
	{{TOPOLOGY "\n{\"format\""},
	 {"a"},
	 "a:2:9: ':' expected near end of file",
	 {false, false, false}},
};

static void test_cases(void)
{
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_documents d = {0};
		struct gf_error err = {""};
		int rc = 0;

		for (k = 0; k < 4 && cases[i].texts[k]; k++) {
			const char *text = cases[i].texts[k];
			bool last = k == 3 || !cases[i].texts[k + 1];

			rc = gf_documents_add_text(&d, text, strlen(text), cases[i].names[k], &err);
			EXPECT(last || rc == 0, "case %zu: %s", i, err.text);
		}
		EXPECT(rc == (cases[i].message ? -EINVAL : 0), "case %zu: %s", i, err.text);
		if (cases[i].message)
			EXPECT_TEXT(err.text, cases[i].message);
		EXPECT((d.topology != NULL) == cases[i].topology, "case %zu", i);
		EXPECT((d.profile && d.profile->model) == cases[i].model, "case %zu", i);
		EXPECT((d.profile && d.profile->network) == cases[i].network, "case %zu", i);
		gf_documents_release(&d);
	}
}

/* Input on standard input is passed on, once, as our writers print it; what was named as an
 * argument does not. */
static void test_passed_on(void)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};
	struct gf_topology t;
	struct gf_json *root;
	char *written;

	EXPECT(!gf_documents_add_text(&d, MODEL_HALF, strlen(MODEL_HALF), "a", &err), "%s",
	       err.text);
	EXPECT(!d.passed_on.data, "an argument");
	EXPECT(!gf_documents_add_text(&d, TOPOLOGY TOPOLOGY, 2 * strlen(TOPOLOGY), "-", &err), "%s",
	       err.text);
	EXPECT(!gf_json_parse(TOPOLOGY, strlen(TOPOLOGY), "t", &root, &err) &&
		       !gf_topology_read(root, "t", &t, &err),
	       "%s", err.text);
	written = gf_topology_write(&t);
	EXPECT_TEXT(d.passed_on.data, written);
	gf_topology_release(&t);
	gf_json_free(root);
	free(written);
	gf_documents_release(&d);
}

/* The digest is of the document as written: blanks do not count, and the digest of a combined
 * profile is that of both halves. */
static void test_digest(void)
{
	struct gf_documents a = {0}, b = {0};
	struct gf_error err = {""};
	char *written, digest[GF_DIGEST_TEXT];

	EXPECT(!gf_documents_add_text(&a, MODEL_HALF NETWORK_HALF, strlen(MODEL_HALF NETWORK_HALF),
				      "a", &err),
	       "%s", err.text);
	written = gf_profile_write(a.profile);
	gf_digest_text(written, strlen(written), digest);
	EXPECT_TEXT(a.profile_digest, digest);
	EXPECT(!gf_documents_add_text(&b, written, strlen(written), "b", &err), "%s", err.text);
	EXPECT_TEXT(b.profile_digest, digest);
	EXPECT_TEXT(b.profile_file, "b");
	free(written);
	gf_documents_release(&a);
	gf_documents_release(&b);
}

static void test_files(void)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};
	struct gf_error want;

	EXPECT(gf_documents_take(&d, "/no/such/file", &err) == -ENOENT, "none");
	gf_error_errno(&want, -ENOENT, "/no/such/file");
	EXPECT_TEXT(err.text, want.text);
	gf_documents_release(&d);
	gf_documents_release(&d); /* safe on a zeroed struct */
}

/* Every document in tests/data/invalid is refused with exactly the message in the text file beside
 * it, where ALGORITHMS stands for their names. */
static void test_invalid(void)
{
	const char *source = getenv("GF_SOURCE");
	char *pattern = gf_xasprintf("%s/tests/data/invalid/*.json", source ? source : ".");
	const struct test_word algorithms = {
		"ALGORITHMS", test_names(&(struct gf_registry){gf_algorithms, 0, NULL}, " or ")};
	glob_t found = {0};
	size_t i;

	glob(pattern, 0, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++) {
		const char *file = strrchr(found.gl_pathv[i], '/') + 1;
		char *document = gf_xasprintf("tests/data/invalid/%s", file);
		char *message = doc_replaced(document, ".json", ".txt");
		char *text = doc_load(document), *want = doc_load(message), *filled;
		struct gf_documents d = {0};
		struct gf_error err = {"accepted"};

		want[strcspn(want, "\n")] = '\0';
		filled = test_filled(want, &algorithms, 1);
		EXPECT(gf_documents_add_text(&d, text, strlen(text), file, &err) == -EINVAL, "%s",
		       file);
		EXPECT_TEXT(err.text, filled);
		gf_documents_release(&d);
		free(text);
		free(want);
		free(filled);
		free(document);
		free(message);
	}
	EXPECT(found.gl_pathc >= 50, "%zu documents", found.gl_pathc);
	globfree(&found);
	free(algorithms.value);
	free(pattern);
}

static char *written(const struct gf_documents *d)
{
	if (d->topology)
		return gf_topology_write(d->topology);
	if (d->profile)
		return gf_profile_write(d->profile);
	if (d->training)
		return gf_training_write(d->training);
	return d->plan ? gf_plan_write(d->plan) : gf_model_write(d->model);
}

/* Shipped documents can be read, and are stored as our own writer prints them.
 */
static void test_shipped(void)
{
	static const char *const folders[] = {"topologies", "models", "profiles", "plans",
					      "training"};
	const char *source = getenv("GF_SOURCE");
	size_t i, k;

	for (k = 0; k < GF_ARRAY_LENGTH(folders); k++) {
		char *pattern =
			gf_xasprintf("%s/share/%s/*.json", source ? source : ".", folders[k]);
		glob_t found = {0};

		glob(pattern, 0, NULL, &found);
		EXPECT(found.gl_pathc > 0, "%s is empty", pattern);
		for (i = 0; i < found.gl_pathc; i++) {
			struct gf_documents d = {0};
			struct gf_error err = {""};
			char *text = NULL, *again;
			size_t size;

			EXPECT(!gf_file_read(found.gl_pathv[i], &text, &size, &err) &&
				       !gf_documents_add_text(&d, text, size, found.gl_pathv[i],
							      &err),
			       "%s", err.text);
			again = written(&d);
			EXPECT(strcmp(text, again) == 0, "%s: want it as our writer prints it",
			       found.gl_pathv[i]);
			free(text);
			free(again);
			gf_documents_release(&d);
		}
		globfree(&found);
		free(pattern);
	}
}

static void expect_example(const char *page, const char *text, size_t size)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};

	EXPECT(!gf_documents_add_text(&d, text, size, page, &err), "%s", err.text);
	gf_documents_release(&d);
}

/* The examples in section 5 of the manual. */
static void test_manual(void)
{
	static const char *const pages[] = {"man/gf-topology.5", "man/gf-profile.5",
					    "man/gf-plan.5.in", "man/gf-model.5",
					    "man/gf-training.5.in"};
	static const char start[] = ".Bd -literal\n{";
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(pages); i++) {
		char *text = doc_load(pages[i]), *at = text;
		size_t count = 0;

		while ((at = strstr(at, start))) {
			at += strlen(start) - 1;
			expect_example(pages[i], at, (size_t)(strstr(at, "\n.Ed") - at));
			count++;
		}
		EXPECT(count > 0, "%s has an example", pages[i]);
		free(text);
	}
}

int main(void)
{
	test_cases();
	test_passed_on();
	test_digest();
	test_files();
	test_invalid();
	test_shipped();
	test_manual();
	return TEST_END();
}
