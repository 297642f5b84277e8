/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <float.h>
#include <stdint.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "json/json.h"
#include "test.h"

static void test_real_text(void)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "0.0"},
		{-0.0, "0.0"},
		{1, "1.0"},
		{-3, "-3.0"},
		{0.1, "0.1"},
		{1 / 3.0, "0.3333333333333333"},
		{0.0001, "0.0001"},
		{0.00025, "0.00025"},
		{1.5e-5, "1.5e-5"},
		{5e-5, "5e-5"},
		{8e9, "8e9"},
		{1.25e8, "1.25e8"},
		{1500, "1500.0"},
		{100000, "1e5"},
		{123456, "123456.0"},
		{12345000000, "12345000000.0"},
		{43.5, "43.5"},
		{9007199254740993.0, "9007199254740992.0"},
		{0.1 + 0.2, "0.30000000000000004"},
		{DBL_MAX, "1.7976931348623157e308"},
		{DBL_MIN, "2.2250738585072014e-308"},
		{4.9406564584124654e-324, "5e-324"},
		{NAN, "null"},
		{INFINITY, "null"},
	};
	char text[GF_JSON_REAL_TEXT];
	struct gf_rng rng;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		gf_json_real_text(cases[i].value, text);
		EXPECT_TEXT(text, cases[i].text);
	}
	gf_rng_init(&rng, 1, 0);
	for (i = 0; i < 100000; i++) {
		uint64_t bits = gf_rng_u64(&rng);
		double value;

		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value) || value == 0)
			continue;
		gf_json_real_text(value, text);
		EXPECT(strtod(text, NULL) == value, "%.17g as %s", value, text);
		EXPECT(strpbrk(text, ".e") != NULL, "%s shows it is real", text);
		if (test_failures)
			return;
	}
}

static void test_quote(void)
{
	static const struct {
		const char *text, *quoted;
	} cases[] = {
		{"", "\"\""},
		{"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
		{"\b\f\n\r\t\x01\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u007f\""},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		 "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
		/* no UTF-8: a lone byte, cut off, overlong, a surrogate, beyond U+10FFFF */
		{"\xff", "\"\xef\xbf\xbd\""},
		{"\xc3", "\"\xef\xbf\xbd\""},
		{"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xe0\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
				     "\xef\xbf\xbd\""},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_text t = {0};

		gf_json_quote(&t, cases[i].text);
		EXPECT_TEXT(t.data, cases[i].quoted);
		gf_text_release(&t);
	}
}

/* Texts that no parser takes, with what is said about them. */
static void test_syntax(void)
{
	static const struct {
		const char *text;
		size_t size; /* 0: the string's */
		const char *message;
	} cases[] = {
		{"", 0, "f: want a JSON document, got nothing"},
		{" \n\t ", 0, "f: want a JSON document, got nothing"},
		{"{", 0, "f:1:1: string or '}' expected near end of file"},
		{"{\n \"a\": [1,\n", 0, "f:3:1: ']' expected near end of file"},
		{"{\"a\": \"b", 0, "f:1:8: premature end of input near '\"b'"},
		{"{\"a\" 1}", 0, "f:1:6: ':' expected near '1'"},
		{"\n\n  {\"a\": 01}", 0, "f:3:9: invalid token near '0'"},
		{"{\"a\": NaN}", 0, "f:1:9: invalid token near 'NaN'"},
		{"{\"a\": 1e999}", 0, "f:1:11: real number overflow near '1e999'"},
		{"{\"a\": 99999999999999999999}", 0,
		 "f:1:26: too big integer near '99999999999999999999'"},
		{"{\"a\": 1, \"b\": 2, \"a\": 3}", 0, "f:1:20: duplicate object key near '\"a\"'"},
		{"{\"a\": \"\\u0000\"}", 0, "f:1:14: \\u0000 is not allowed in a string"},
		{"{\"a\": \"\xff\"}", 0,
		 "f:1:7: unable to decode byte 0xff "
		 "near '\"'"},
		{"{\"a\": \"x\001\"}", 0, "f:1:8: control character 0x1 near '\"x'"},
		{"{} {}", 0, "f:1:4: want one document, got more after it"},
		{"{}\nx", 0, "f:2:1: want one document, got more after it"},
		{"{}\0", 3, "f:1:3: want one document, got more after it"},
		{"3", 0, "f:1:1: '[' or '{' expected near '3'"},
		{"x{", 0, "f:1:1: '[' or '{' expected near 'x'"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
		struct gf_error err = {""};
		struct gf_json *root;

		EXPECT(gf_json_parse(cases[i].text, size, "f", &root, &err) == -EINVAL, "%s",
		       cases[i].text);
		EXPECT_TEXT(err.text, cases[i].message);
	}
}

static void test_depth(void)
{
	struct gf_text t = {0};
	struct gf_json *root;
	struct gf_error err;
	int i;

	for (i = 0; i < GF_JSON_MAX_DEPTH; i++)
		gf_text_addf(&t, "[");
	for (i = 0; i < GF_JSON_MAX_DEPTH; i++)
		gf_text_addf(&t, "]");
	EXPECT(gf_json_parse(t.data, t.length, "f", &root, &err) == 0, "64: %s", err.text);
	gf_json_free(root);
	gf_text_release(&t);
	for (i = 0; i < 1000000; i++)
		gf_text_addf(&t, "[");
	EXPECT(gf_json_parse(t.data, t.length, "f", &root, &err) == -EINVAL, "a million");
	EXPECT_TEXT(err.text, "f:1:65: want at most 64 levels of nesting, got more");
	gf_text_release(&t);
}

static void test_concatenation(void)
{
	static const char text[] = "{\"a\": \"}{\"}{\"b\": 2}\n\n[3] {\"c\":}";
	struct gf_error err = {""};
	struct gf_json *root;
	size_t used = 0, count;

	for (count = 0; count < 3; count++) {
		EXPECT(gf_json_parse_next(text, strlen(text), "f", &used, &root, &err) == 0 && root,
		       "document %zu: %s", count, err.text);
		gf_json_free(root);
	}
	EXPECT(gf_json_parse_next(text, strlen(text), "f", &used, &root, &err) == -EINVAL,
	       "the last one");
	EXPECT_TEXT(err.text, "f:3:10: unexpected token near '}'");
	used = strlen(text);
	EXPECT(gf_json_parse_next(text, strlen(text), "f", &used, &root, &err) == 0 && !root,
	       "the end");
}

/* What less strict programs write. */
static void test_loose(void)
{
	static const char text[] =
		"[{\"a\": 1, \"b\": 18446744073709551616, \"c\": \"x\\u0000y\", \"a\": 3}]";
	struct gf_error err = {""};
	struct gf_json *root;
	struct gf_json_at at, item = {0};
	size_t count, whole = 0;
	double real = 0;
	char *string = NULL;

	EXPECT(gf_json_parse(text, strlen(text), "f", &root, NULL) == -EINVAL, "strict");
	EXPECT(!gf_json_parse_loose(text, strlen(text), "f", &root, &err) &&
		       gf_json_root_is_array(root) &&
		       !gf_json_root_array(root, "f", &at, &count, &err) && count == 1 &&
		       !gf_json_object(gf_json_item(&at, 0), NULL, &item, &err),
	       "%s", err.text);
	EXPECT(!gf_json_size(&item, "a", 0, 9, &whole, &err) && whole == 3, "a: %zu %s", whole,
	       err.text);
	EXPECT(!gf_json_real(&item, "b", 0, 1e20, &real, &err) && real == 0x1p64, "b: %g %s", real,
	       err.text);
	EXPECT(!gf_json_string(&item, "c", &string, &err), "%s", err.text);
	EXPECT_TEXT(string, "x");
	free(string);
	gf_json_leave(&item);
	gf_json_free(root);
	EXPECT(gf_json_parse_loose("{\"a\": 1", 7, "f", &root, &err) == -EINVAL, "cut off");
}

/* One getter on {"v": <text>}: a message, or NULL for success. */
enum getter { STRING, CHOICE, BOOL, SIZE, INT, REAL, RAW, OBJECT, ARRAY };

static int get(enum getter getter, struct gf_json_at *at, struct gf_error *err)
{
	static const char *const names[] = {"one", "two", NULL};
	struct gf_json_at inner = {0};
	char *text = NULL;
	size_t size;
	double real;
	int rc = 0, number;
	bool flag;

	switch (getter) {
	case STRING:
		rc = gf_json_string(at, "v", &text, err);
		break;
	case CHOICE:
		rc = gf_json_choice(at, "v", names, &number, err);
		break;
	case BOOL:
		rc = gf_json_bool(at, "v", &flag, err);
		break;
	case SIZE:
		rc = gf_json_size(at, "v", 1, 10, &size, err);
		break;
	case INT:
		rc = gf_json_int(at, "v", -3, 3, &number, err);
		break;
	case REAL:
		rc = gf_json_real(at, "v", 0, 2.5, &real, err);
		break;
	case RAW:
		rc = gf_json_raw(at, "v", &text, err);
		break;
	case OBJECT:
		rc = gf_json_object(at, "v", &inner, err);
		gf_json_leave(&inner);
		break;
	case ARRAY:
		rc = gf_json_array(at, "v", &inner, &size, err);
		break;
	}
	free(text);
	return rc;
}

static void test_getters(void)
{
	static const struct {
		enum getter getter;
		const char *value, *message;
	} cases[] = {
		{STRING, "\"a\"", NULL},
		{STRING, "1", "want a string, got 1"},
		{STRING, "\"\"", "want a string that is not empty, got \"\""},
		{STRING, "\"a\\tb\"", "want a string without control characters, got \"a\\x09b\""},
		{CHOICE, "\"two\"", NULL},
		{CHOICE, "\"three\"", "want \"one\" or \"two\", got \"three\""},
		{CHOICE, "null", "want \"one\" or \"two\", got null"},
		{BOOL, "true", NULL},
		{BOOL, "false", NULL},
		{BOOL, "1", "want true or false, got 1"},
		{SIZE, "10", NULL},
		{SIZE, "0", "want an integer >= 1, got 0"},
		{SIZE, "-1", "want an integer >= 1, got -1"},
		{SIZE, "11", "want an integer <= 10, got 11"},
		{SIZE, "3.0", NULL},
		{SIZE, "3.5", "want an integer, got 3.5"},
		{SIZE, "11.0", "want an integer <= 10, got 11.0"},
		{INT, "1e16", "want an integer, got 1e16"},
		{SIZE, "9223372036854775807", "want an integer <= 10, got 9223372036854775807"},
		{INT, "-3", NULL},
		{INT, "-4", "want an integer >= -3, got -4"},
		{INT, "4294967297", "want an integer <= 3, got 4294967297"},
		{REAL, "2.5", NULL},
		{REAL, "1", NULL},
		{REAL, "1e-320", NULL},
		{REAL, "-0.5", "want a number >= 0, got -0.5"},
		{REAL, "2.6", "want a number <= 2.5, got 2.6"},
		{REAL, "\"1\"", "want a number, got \"1\""},
		{REAL, "[1]", "want a number, got an array"},
		{RAW, "{\"a\": [1]}", NULL},
		{RAW, "[]", "want an object, got an array"},
		{OBJECT, "{}", NULL},
		{OBJECT, "true", "want an object, got true"},
		{ARRAY, "[]", NULL},
		{ARRAY, "{}", "want an array, got an object"},
		{STRING, "{\"long\": 1}", "want a string, got an object"},
		{REAL,
		 "\"0123456789012345678901234567890123456789012345678901234567\xc3\xa9\xc3\xa9\"",
		 "want a number, got "
		 "\"0123456789012345678901234567890123456789012345678901234567\xc3\xa9...\""},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *text = gf_xasprintf("{\"v\": %s}", cases[i].value);
		char *want = gf_xasprintf("f: /v: %s", cases[i].message ? cases[i].message : "");
		struct gf_error err = {""};
		struct gf_json *root;
		struct gf_json_at at;

		EXPECT(!gf_json_parse(text, strlen(text), "f", &root, &err), "%s", err.text);
		EXPECT(!gf_json_root(root, "f", &at, &err), "%s", err.text);
		EXPECT(get(cases[i].getter, &at, &err) == (cases[i].message ? -EINVAL : 0),
		       "%s: %s", text, err.text);
		if (cases[i].message)
			EXPECT_TEXT(err.text, want);
		gf_json_leave(&at);
		gf_json_free(root);
		free(text);
		free(want);
	}
}

/* Keys that nobody asked for; those of the user's own come back. */
static void test_extra(void)
{
	static const char text[] = "{\"a\": 1, \"x-b\": [1, 2.0, {\"c\": null}], \"x-\": \"d\"}";
	struct gf_json_writer w = {0};
	struct gf_error err;
	struct gf_json *root;
	struct gf_json_at at;
	char *extra;
	size_t a;

	EXPECT(!gf_json_parse(text, strlen(text), "f", &root, &err), "parse");
	EXPECT(!gf_json_root(root, "f", &at, &err), "root");
	EXPECT(gf_json_end(&at, &extra, &err) == -EINVAL, "a is unknown");
	EXPECT_TEXT(err.text, "f: /a: unknown key (keys of your own begin with x-)");
	EXPECT(!gf_json_root(root, "f", &at, &err), "root");
	EXPECT(!gf_json_size(&at, "a", 0, 9, &a, &err) && a == 1, "a");
	EXPECT(gf_json_end(&at, NULL, &err) == -EINVAL, "no keys of one's own");
	EXPECT(!gf_json_root(root, "f", &at, &err), "root");
	EXPECT(!gf_json_size(&at, "a", 0, 9, &a, &err), "a");
	EXPECT(!gf_json_end(&at, &extra, &err), "%s", err.text);
	EXPECT_TEXT(extra, "{\"x-b\":[1,2.0,{\"c\":null}],\"x-\":\"d\"}");
	gf_json_open_line(&w, NULL);
	gf_json_put_extra(&w, extra);
	gf_json_close_object(&w);
	EXPECT_TEXT(w.text.data, "{\"x-b\": [1, 2.0, {\"c\": null}], \"x-\": \"d\"}\n");
	gf_text_release(&w.text);
	free(extra);
	gf_json_free(root);
}

static void test_merge(void)
{
	char *merged = gf_json_merge("{\"a\":1,\"b\":2}", "{\"b\":3,\"c\":4}");

	EXPECT_TEXT(merged, "{\"a\":1,\"b\":2,\"c\":4}");
	free(merged);
	merged = gf_json_merge(NULL, "{\"b\":3}");
	EXPECT_TEXT(merged, "{\"b\":3}");
	free(merged);
	EXPECT(gf_json_merge(NULL, NULL) == NULL, "nothing");
}

static void test_writer(void)
{
	static const char want[] = "{\n"
				   "  \"text\": \"a\\nb\",\n"
				   "  \"size\": 18446744073709551615,\n"
				   "  \"int\": -7,\n"
				   "  \"yes\": true,\n"
				   "  \"empty\": {},\n"
				   "  \"none\": [],\n"
				   "  \"row\": [1.5, {\"in\": [2]}],\n"
				   "  \"list\": [\n"
				   "    {\"a\": 1, \"b\": [2, 3]},\n"
				   "    {\n"
				   "      \"c\": 4\n"
				   "    }\n"
				   "  ],\n"
				   "  \"raw\": {\n"
				   "    \"deep\": [\n"
				   "      [1, 2],\n"
				   "      \"x\"\n"
				   "    ]\n"
				   "  }\n"
				   "}\n";
	struct gf_json_writer w = {0};

	gf_json_open_object(&w, NULL);
	gf_json_put_string(&w, "text", "a\nb");
	gf_json_put_size(&w, "size", SIZE_MAX);
	gf_json_put_int(&w, "int", -7);
	gf_json_put_bool(&w, "yes", true);
	gf_json_open_object(&w, "empty");
	gf_json_close_object(&w);
	gf_json_open_array(&w, "none");
	gf_json_close_array(&w);
	gf_json_open_row(&w, "row");
	gf_json_put_real(&w, NULL, 1.5);
	gf_json_open_object(&w, NULL);
	gf_json_open_array(&w, "in");
	gf_json_put_int(&w, NULL, 2);
	gf_json_close_array(&w);
	gf_json_close_object(&w);
	gf_json_close_array(&w);
	gf_json_open_array(&w, "list");
	gf_json_open_line(&w, NULL);
	gf_json_put_int(&w, "a", 1);
	gf_json_open_row(&w, "b");
	gf_json_put_int(&w, NULL, 2);
	gf_json_put_int(&w, NULL, 3);
	gf_json_close_array(&w);
	gf_json_close_object(&w);
	gf_json_open_object(&w, NULL);
	gf_json_put_int(&w, "c", 4);
	gf_json_close_object(&w);
	gf_json_close_array(&w);
	gf_json_put_raw(&w, "raw", "{\"deep\":[[1,2],\"x\"]}");
	gf_json_close_object(&w);
	EXPECT_TEXT(w.text.data, want);
	gf_text_release(&w.text);
}

static void test_rows(void)
{
	static const char lines[] = "{\"a\": 1, \"b\": {\"c\": \"x,y\", \"d\": 0.25}}\n"
				    "{\"e\": \"say \\\"no\\\"\", \"a\": null, \"f\": [1, 2]}\n";
	struct gf_text out = {0};
	struct gf_error err;

	EXPECT(gf_json_rows_text(lines, ',', &out, &err) == 0, "%s", err.text);
	EXPECT_TEXT(out.data, "a,b.c,b.d,e,f\n1,\"x,y\",0.25,,\n"
			      ",,,\"say \"\"no\"\"\",\"[1,2]\"\n");
	gf_text_release(&out);
	EXPECT(gf_json_rows_text(lines, '\t', &out, &err) == 0, "%s", err.text);
	EXPECT_TEXT(out.data, "a\tb.c\tb.d\te\tf\n1\tx,y\t0.25\t\t\n"
			      "\t\t\t\"say \"\"no\"\"\"\t[1,2]\n");
	gf_text_release(&out);
	EXPECT(gf_json_rows_text("[1]\n", ',', &out, &err) == -EINVAL, "no object");
}

int main(void)
{
	test_rows();
	test_real_text();
	test_quote();
	test_syntax();
	test_depth();
	test_concatenation();
	test_loose();
	test_getters();
	test_extra();
	test_merge();
	test_writer();
	return TEST_END();
}
