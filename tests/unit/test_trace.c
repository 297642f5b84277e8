/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/json.h"
#include "documents/trace.h"
#include "test.h"

static const char want[] =
	"{\"displayTimeUnit\": \"ms\",\n"
	"\"otherData\": {\"plan\": \"sha256:00\"},\n"
	"\"traceEvents\": [\n"
	"{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"process_name\", \"args\": {\"name\": "
	"\"rank 1\"}},\n"
	"{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"process_sort_index\", \"args\": "
	"{\"sort_index\": 1}},\n"
	"{\"ph\": \"M\", \"pid\": 1, \"tid\": 2, \"name\": \"thread_name\", \"args\": {\"name\": "
	"\"lane \\\"2\\\"\"}},\n"
	"{\"ph\": \"M\", \"pid\": 1, \"tid\": 2, \"name\": \"thread_sort_index\", \"args\": "
	"{\"sort_index\": 2}},\n"
	"{\"ph\": \"X\", \"pid\": 1, \"tid\": 0, \"cat\": \"compute\", \"name\": \"forward\", "
	"\"ts\": 0.000, \"dur\": 1500.250},\n"
	"{\"ph\": \"X\", \"pid\": 1, \"tid\": 2, \"cat\": \"message\", \"name\": \"m0\", \"ts\": "
	"1500.250, \"dur\": 2.000, \"args\": {\"bytes\": 24}},\n"
	"{\"ph\": \"s\", \"pid\": 1, \"tid\": 0, \"cat\": \"flow\", \"name\": \"ready\", \"ts\": "
	"1500.000, \"id\": 7},\n"
	"{\"ph\": \"f\", \"pid\": 1, \"tid\": 2, \"cat\": \"flow\", \"name\": \"ready\", \"ts\": "
	"1501.000, \"id\": 7, \"bp\": \"e\"}\n"
	"]}\n";

static void expect_json(const char *text)
{
	struct gf_error err = {""};
	struct gf_json *root = NULL;

	EXPECT(gf_json_parse(text, strlen(text), "trace", &root, &err) == 0, "%s", err.text);
	gf_json_free(root);
}

/* Two ranks' events, joined as rank 0 does. */
static void test_events(void)
{
	struct gf_trace one = {{0}}, all = {{0}};
	char *text;

	gf_trace_thread(&one, 1, 2, "lane \"2\"");
	gf_trace_slice(&one, 1, 0, "compute", "forward", 0, 1.50025e-3, NULL);
	gf_trace_slice(&one, 1, 2, "message", "m0", 1.50025e-3, 2e-6, "{\"bytes\": 24}");
	gf_trace_process(&all, 1, "rank 1");
	gf_trace_append(&all, "", 0);
	gf_trace_append(&all, one.events.data, one.events.length);
	gf_trace_flow(&all, 1, 0, 1.5e-3, 2, 1.501e-3, 7);
	text = gf_trace_finish(&all, "{\"plan\": \"sha256:00\"}");
	EXPECT_TEXT(text, want);
	expect_json(text);
	free(text);
	gf_trace_release(&one);
	gf_trace_release(&all);
}

static void test_empty(void)
{
	struct gf_trace none = {{0}};
	char *text = gf_trace_finish(&none, NULL);

	EXPECT_TEXT(text, "{\"displayTimeUnit\": \"ms\",\n"
			  "\"traceEvents\": [\n\n]}\n");
	expect_json(text);
	free(text);
	gf_trace_release(&none);
}

/* Slices that touch in time touch in the file, whatever is rounded. */
static void test_touching(void)
{
	double at = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		double length = 1e-6 + i * 0.3333333e-9, ts[2], dur[2];
		struct gf_trace t = {{0}};
		const char *event;

		gf_trace_slice(&t, 0, 0, "c", "a", at, length, NULL);
		gf_trace_append(&t, "", 0);
		gf_trace_slice(&t, 0, 0, "c", "b", at + length, length, NULL);
		event = strstr(t.events.data, "\"ts\"");
		EXPECT(sscanf(event, "\"ts\": %lf, \"dur\": %lf", &ts[0], &dur[0]) == 2, "%s",
		       event);
		event = strstr(event + 1, "\"ts\"");
		EXPECT(sscanf(event, "\"ts\": %lf, \"dur\": %lf", &ts[1], &dur[1]) == 2, "%s",
		       event);
		EXPECT(fabs(ts[0] + dur[0] - ts[1]) < 1e-6, "%d: %.3f and %.3f", i, ts[0] + dur[0],
		       ts[1]);
		at += 2 * length;
		gf_trace_release(&t);
	}
}

int main(void)
{
	test_events();
	test_empty();
	test_touching();
	return TEST_END();
}
