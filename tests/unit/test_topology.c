/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "documents/topology.h"
#include "doc_test.h"

static char *trip(const struct gf_json *root, const char *file, struct gf_error *err)
{
	struct gf_topology t;
	struct gf_error none;
	char *written;

	if (gf_topology_read(root, file, &t, err))
		return NULL;
	EXPECT(gf_topology_check(&t, &none) == 0, "check: %s", none.text);
	written = gf_topology_write(&t);
	gf_topology_release(&t);
	return written;
}

static const struct doc_case cases[] = {
	{"\"ranks\": 8,", "", NULL},
	{"\"producer\": \"gf-topo 0.1.0\", ", "", NULL},
	{"\"latency_s\": 5e-5", "\"latency_s\": 5e-5, \"x-a\": {\"b\": [1, {}]}", NULL},
	{"gf-topology", "gf-plan", "t.json: /format: want \"gf-topology\", got \"gf-plan\""},
	{"\"version\": 1", "\"version\": 2", "t.json: /version: want 1, got 2"},
	{"\"version\": 1", "\"version\": 1.5", "t.json: /version: want an integer, got 1.5"},
	{"\"ranks\": 8", "\"ranks\": 7",
	 "t.json: /ranks: want 8, the product of the level sizes, got 7"},
	{"\"ranks\": 8", "\"ranks\": \"8\"", "t.json: /ranks: want an integer, got \"8\""},
	{"\"ranks\": 8", "\"ranks\": 0", "t.json: /ranks: want an integer >= 1, got 0"},
	{"\"ranks\": 8", "\"rank\": 8",
	 "t.json: /rank: unknown key (keys of your own begin with x-)"},
	{"\"ranks\": 8", "\"a/b~c\\n\": 8",
	 "t.json: /a~1b~0c\\x0A: unknown key (keys of your own begin with x-)"},
	{"\"size\": 4, ", "", "t.json: /levels/1/size: want an integer, got nothing"},
	{"\"size\": 4", "\"size\": 0", "t.json: /levels/1/size: want an integer >= 1, got 0"},
	{"\"size\": 4", "\"size\": 16777216",
	 "t.json: /levels: want sizes whose product is at most 16777216, "
	 "got more"},
	{"\"size\": 4", "\"size\": 4, \"size\": 4",
	 "t.json:3:46: duplicate object key near '\"size\"'"},
	{"\"name\": \"net\"", "\"name\": \"host\"",
	 "t.json: /levels/1/name: want a name of its own, got \"host\" again"},
	{"\"name\": \"net\"", "\"name\": \"\"",
	 "t.json: /levels/1/name: want a string that is not empty, got \"\""},
	{"\"name\": \"net\"", "\"name\": \"n\\net\"",
	 "t.json: /levels/1/name: want a string without control characters, got \"n\\x0Aet\""},
	{"8e9", "0", "t.json: /levels/0/bandwidth_bytes_per_s: want a number > 0, got 0"},
	{"8e9", "1e300",
	 "t.json: /levels/0/bandwidth_bytes_per_s: want a number <= 1e+18, got 1e300"},
	{"1e-6", "-1", "t.json: /levels/0/latency_s: want a number >= 0, got -1"},
	{"1e-6", "\"3us\"", "t.json: /levels/0/latency_s: want a number, got \"3us\""},
	{"1e-6", "1e-6, \"latency_origin\": \"guessed\"",
	 "t.json: /levels/0/latency_origin: want \"assumed\", \"reported\" or \"measured\", got "
	 "\"guessed\""},
	{"\"devices\": []", "\"devices\": [null]",
	 "t.json: /hosts/0/devices/0: want an object, got null"},
	{"\"devices\": []", "\"devices\": {}",
	 "t.json: /hosts/0/devices: want an array, got an object"},
	{"\"nics\": []", "\"nics\": [{\"name\": \"a\", \"link\": \"b\"}]",
	 "t.json: /hosts/0/nics/0/state: want a string, got nothing"},
	{"\"nics\": []", "\"cores\": 3000000000",
	 "t.json: /hosts/0/cores: want an integer <= 2147483647, "
	 "got 3000000000"},
};

static void test_made_by_code(void)
{
	struct gf_level levels[] = {{.name = (char *)"net",
				     .size = 4,
				     .link = (char *)"ethernet",
				     .bandwidth_bytes_per_s = NAN}};
	struct gf_topology t = {
		.name = (char *)"made", .source = (char *)"test", .levels = levels, .nlevels = 1};
	struct gf_error err;

	EXPECT(gf_topology_check(&t, &err) != 0, "NaN");
	EXPECT_TEXT(err.text,
		    "the topology: /levels/0/bandwidth_bytes_per_s: want a number, got null");
	levels[0].bandwidth_bytes_per_s = 1;
	EXPECT(gf_topology_check(&t, &err) == 0, "%s", err.text);
	levels[0].size = (size_t)1 << 40;
	EXPECT(gf_levels_ranks(levels, 1) == 0, "overflow");
}

static void test_copy(void)
{
	struct gf_level one = {.name = (char *)"net",
			       .link = (char *)"a",
			       .size = 3,
			       .extra = (char *)"{\"x-a\":1}"};
	struct gf_level *copy = gf_levels_copy(&one, 1);

	EXPECT(copy->name != one.name && copy->extra != one.extra, "deep");
	EXPECT_TEXT(copy->name, "net");
	EXPECT_TEXT(copy->extra, "{\"x-a\":1}");
	gf_levels_free(copy, 1);
	EXPECT(gf_levels_copy(NULL, 0) == NULL, "nothing");
	gf_levels_free(NULL, 0);
}

int main(void)
{
	char *base = doc_load("tests/data/valid/topology-4x2-1gbe.json");
	char *host = doc_load("tests/data/valid/topology-host.json");

	doc_expect_stable(base, "topology-4x2-1gbe", trip);
	doc_expect_stable(host, "topology-host", trip);
	doc_run_cases(base, "t.json", trip, cases, GF_ARRAY_LENGTH(cases));
	test_made_by_code();
	test_copy();
	free(base);
	free(host);
	return TEST_END();
}
