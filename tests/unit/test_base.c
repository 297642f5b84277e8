/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/slab.h"
#include "base/text.h"
#include "base/units.h"
#include "test.h"

static void test_digest(void)
{
	/* FIPS 180-4 examples, and the lengths around the padding's edge */
	static const struct {
		const char *fill;
		size_t repeat;
		const char *want;
	} cases[] = {
		{"", 0, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", 1,
		 "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		 "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"a", 1000000,
		 "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
		{"a", 55,
		 "sha256:9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
		{"a", 64,
		 "sha256:ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
	};
	char got[GF_DIGEST_TEXT];
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_text t = {0};

		for (k = 0; k < cases[i].repeat; k++)
			gf_text_add(&t, cases[i].fill, strlen(cases[i].fill));
		gf_digest_text(t.data ? t.data : "", t.length, got);
		EXPECT_TEXT(got, cases[i].want);
		gf_text_release(&t);
	}
}

/* The digest is the same, however the bytes come. */
static void test_digest_pieces(void)
{
	enum { BYTES = 1000 };
	unsigned char data[BYTES], one[GF_DIGEST_BYTES], two[GF_DIGEST_BYTES];
	struct gf_digest a, b;
	size_t i, n, piece, size;

	for (i = 0; i < BYTES; i++)
		data[i] = (unsigned char)(i * 167 + i / 256);
	for (size = 0; size <= BYTES; size += size < 200 ? 1 : 61) {
		gf_digest_init(&a);
		gf_digest_add(&a, data, size);
		gf_digest_end(&a, one);
		gf_digest_init(&b);
		for (i = 0, piece = 1; i < size; i += n, piece += 7) {
			n = piece < size - i ? piece : size - i;
			gf_digest_add(&b, data + i, n);
		}
		gf_digest_end(&b, two);
		EXPECT(memcmp(one, two, sizeof(one)) == 0, "%zu bytes", size);
	}
}

static void test_units(void)
{
	static const struct {
		const char *text;
		int rc;
		size_t want;
	} sizes[] = {
		{"0", 0, 0},          {"4096", 0, 4096},    {"64K", 0, 65536},
		{"4M", 0, 4194304},   {"1.5K", 0, 1536},    {"2GiB", 0, 2147483648u},
		{"-1", -EINVAL, 0},   {"1.5", -EINVAL, 0},  {"", -EINVAL, 0},
		{"K", -EINVAL, 0},    {"4 M", -EINVAL, 0},  {"nan", -EINVAL, 0},
		{"0x10", -EINVAL, 0}, {"1e30", -EINVAL, 0}, {" 4", -EINVAL, 0},
		{"64k", 0, 65536},    {"4MB", 0, 4194304},  {"4m", 0, 4194304},
		{"1e3", 0, 1000},     {"1KiB", 0, 1024},    {"1i", -EINVAL, 0},
		{"4Mb", -EINVAL, 0},  {"4MM", -EINVAL, 0},  {"2P", 0, (size_t)2 << 50},
	};
	static const struct {
		int (*read)(const char *text, double *out, struct gf_error *err);
		const char *text;
		double want; /* -1: refused */
	} reals[] = {
		{gf_units_rate, "100Gb/s", 12.5e9},
		{gf_units_rate, "10Gbps", 1.25e9},
		{gf_units_rate, "10Gbit/s", 1.25e9},
		{gf_units_rate, "10gb/s", 1.25e9},
		{gf_units_rate, "10gB/s", 10e9},
		{gf_units_rate, "10GBps", 10e9},
		{gf_units_rate, "32GB/s", 32e9},
		{gf_units_rate, "1e9B/s", 1e9},
		{gf_units_rate, "1e9", -1},
		{gf_units_rate, "10G", -1},
		{gf_units_rate, "10GiB/s", -1},
		{gf_units_rate, "-1GB/s", -1},
		{gf_units_rate, "8x400Gb/s", 400e9},
		{gf_units_rate, "0x400Gb/s", -1},
		{gf_units_rate, "x400Gb/s", -1},
		{gf_units_rate, "99999999x400Gb/s", -1},
		{gf_units_time, "3us", 3e-6},
		{gf_units_time, "5us", 5e-6},
		{gf_units_time, "3\u00b5s", 3e-6},
		{gf_units_time, "3\u03bcs", 3e-6},
		{gf_units_time, "1.5ms", 1.5e-3},
		{gf_units_time, "20ns", 20e-9},
		{gf_units_time, "3", 3},
		{gf_units_time, "3m", -1},
		{gf_units_time, "-3s", -1},
		{gf_units_flops, "7e12", 7e12},
		{gf_units_flops, "15TF", 15e12},
		{gf_units_flops, "15T", 15e12},
		{gf_units_flops, "989TFLOP/s", 989e12},
		{gf_units_flops, "1PFLOPS", 1e15},
		{gf_units_flops, "0", -1},
		{gf_units_flops, "15TB/s", -1},
	};
	struct gf_error err;
	double real;
	long long whole;
	size_t i, size;

	for (i = 0; i < GF_ARRAY_LENGTH(sizes); i++) {
		size = 77;
		EXPECT(gf_units_size(sizes[i].text, &size, &err) == sizes[i].rc, "\"%s\"",
		       sizes[i].text);
		EXPECT(size == (sizes[i].rc ? 77 : sizes[i].want), "\"%s\"", sizes[i].text);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(reals); i++) {
		real = -1;
		reals[i].read(reals[i].text, &real, &err);
		EXPECT(real == reals[i].want, "\"%s\": %.17g", reals[i].text, real);
	}
	EXPECT(gf_units_rate("0GB/s", &real, &err) == -EINVAL, "rate 0");
	EXPECT_TEXT(err.text, "want a rate > 0 such as 12.5GB/s, 100Gb/s or 8x100Gb/s, got \"0GB/s\"");
	EXPECT(!gf_units_int("-7", -9, 9, &whole, &err) && whole == -7, "int");
	EXPECT(gf_units_int("10", -9, 9, &whole, &err) == -EINVAL, "int range");
	EXPECT(gf_units_int("1x", -9, 9, &whole, &err) == -EINVAL, "int tail");
	EXPECT(gf_units_real("inf", -9, 9, &real, &err) == -EINVAL, "inf");
	EXPECT(!gf_units_real("15%", 0, 1, &real, &err) && fabs(real - 0.15) < 1e-15,
	       "a share in per cent");
	EXPECT(gf_units_real("101%", 0, 1, &real, &err) == -EINVAL &&
		       gf_units_real("15%", 0, 2, &real, &err) == -EINVAL &&
		       gf_units_real("5%%", 0, 1, &real, &err) == -EINVAL,
	       "too many per cent");
	EXPECT(!gf_units_real("1e-3", 0, 1, &real, &err) && real == 1e-3, "real");
}

static void test_rng(void)
{
	struct gf_rng a, b, c;
	size_t order[100], seen[100] = {0}, i;
	double sum = 0, squares = 0;

	gf_rng_init(&a, 7, 1);
	gf_rng_init(&b, 7, 1);
	gf_rng_init(&c, 7, 2);
	for (i = 0; i < 100; i++) {
		uint64_t x = gf_rng_u64(&a);

		EXPECT(x == gf_rng_u64(&b), "same seed, draw %zu", i);
		EXPECT(x != gf_rng_u64(&c), "other stream, draw %zu", i);
		order[i] = i;
	}
	gf_rng_shuffle(&a, order, 100);
	for (i = 0; i < 100; i++)
		seen[order[i]]++;
	for (i = 0; i < 100; i++)
		EXPECT(seen[i] == 1, "a permutation: %zu", i);
	for (i = 0; i < 100000; i++) {
		double x = gf_rng_normal(&a);

		sum += x;
		squares += x * x;
		EXPECT(gf_rng_below(&a, 3) < 3, "bound");
	}
	EXPECT_NEAR(sum / 100000, 0, 0.02, "mean");
	EXPECT_NEAR(squares / 100000, 1, 0.02, "variance");
}

static void test_error(void)
{
	struct gf_error err = {""};
	char name[5000] = "";
	size_t i;

	EXPECT(gf_error_set(&err, -EINVAL, "want %d", 3) == -EINVAL, "rc");
	gf_error_prefix(&err, "file %s", "x");
	EXPECT_TEXT(err.text, "file x: want 3");
	EXPECT(gf_error_errno(&err, -ENOENT, "y") == -ENOENT, "rc");
	EXPECT_TEXT(err.text, "y: No such file or directory");
	/* one line, whatever is in a name; a long one loses its middle */
	gf_error_errno(&err, -ENOENT, "a\x01%s\x7f", "b\nc\x1b[31m");
	EXPECT_TEXT(err.text, "a\\x01b\\x0Ac\\x1B[31m\\x7F: No such file or directory");
	memset(name, 'x', sizeof(name) - 1);
	gf_error_errno(&err, -ENAMETOOLONG, "%s", name);
	EXPECT(!strncmp(err.text, "xxx", 3) && strstr(err.text, "x...x") &&
		       strstr(err.text, "x: File name too long") &&
		       strlen(err.text) == sizeof(err.text) - 1,
	       "%s", err.text);
	gf_error_prefix(&err, "%s", "rank 3");
	EXPECT(!strncmp(err.text, "rank 3: xxx", 11) && strstr(err.text, "x: File name too long"),
	       "%s", err.text);
	/* characters stay whole */
	for (i = 0; i + 1 < sizeof(name); i++)
		name[i] = i % 2 ? '\xa9' : '\xc3';
	gf_error_set(&err, -EINVAL, "x%s", name);
	EXPECT(strstr(err.text, "\xc3\xa9...\xc3\xa9"), "%s", err.text);
	EXPECT(gf_error_set(NULL, -5, "x") == -5, "NULL is allowed");
	gf_error_prefix(NULL, "x");
}

/* What a terminal would obey, or shows in another order, is shown as bytes. */
static void test_hidden(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"plain", "plain"},
		{"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"},
		{"a\033[31m\n\177", "a\\x1B[31m\\x0A\\x7F"},
		{"\xc2\x9b"
		 "31m",
		 "\\xC2\\x9B31m"},
		{"\xe2\x80\xae"
		 "cod",
		 "\\xE2\\x80\\xAE"
		 "cod"},
		{"\xe2\x81\xa6x\xe2\x81\xa9", "\\xE2\\x81\\xA6x\\xE2\\x81\\xA9"},
		{"\xd8\x9c\xe2\x80\x8f\xe2\x80\xa8", "\\xD8\\x9C\\xE2\\x80\\x8F\\xE2\\x80\\xA8"},
		/* no UTF-8: a control of 8 bits, an overlong form, half a character, a surrogate */
		{"\x9b"
		 "31m",
		 "\\x9B31m"},
		{"\xc0\x9b", "\\xC0\\x9B"},
		{"\xe2\x80", "\\xE2\\x80"},
		{"\xed\xa0\x80", "\\xED\\xA0\\x80"},
	};
	struct gf_error err;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		gf_error_set(&err, -EINVAL, "%s", cases[i].text);
		EXPECT_TEXT(err.text, cases[i].want);
	}
}

/* A replaced file keeps its mode, a new one has the umask's, and a link stays one, also where it
 * leads to nothing yet. */
static void test_modes(const char *folder, const char *path)
{
	static const struct {
		const char *label, *to; /* of the link; NULL: the file itself */
		mode_t mode;            /* before; 0: there is no file */
		mode_t mask, want;
	} cases[] = {
		{"private", NULL, 0600, 022, 0600},
		{"shared", NULL, 0664, 077, 0664},
		{"new", NULL, 0, 022, 0644},
		{"new and private", NULL, 0, 077, 0600},
		{"a link", "a", 0640, 022, 0640},
		{"to nothing yet", "a", 0, 027, 0640},
		{"with folders", "../%s/a", 0600, 022, 0600},
	};
	char *link = gf_xasprintf("%s/link", folder), *to;
	struct gf_error err;
	struct stat st;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const mode_t before = umask(cases[i].mask);

		unlink(path);
		if (cases[i].mode)
			EXPECT(!gf_file_write(path, "old", 3, &err) && !chmod(path, cases[i].mode),
			       "%s", err.text);
		to = gf_xasprintf(cases[i].to ? cases[i].to : "%s", strrchr(folder, '/') + 1);
		EXPECT(!cases[i].to || !symlink(to, link), "%s", to);
		EXPECT(!gf_file_write(cases[i].to ? link : path, "new!", 4, &err), "%s: %s",
		       cases[i].label, err.text);
		EXPECT(!lstat(path, &st) && S_ISREG(st.st_mode) && st.st_size == 4 &&
			       (st.st_mode & 0777) == cases[i].want,
		       "%s: mode %o", cases[i].label, st.st_mode & 0777);
		EXPECT(!cases[i].to || (!lstat(link, &st) && S_ISLNK(st.st_mode)),
		       "%s: still a link", cases[i].label);
		unlink(link);
		free(to);
		umask(before);
	}
	EXPECT(!symlink("link", link) && gf_file_write(link, "x", 1, &err) == -ELOOP,
	       "a link to itself: %s", err.text);
	unlink(link);
	free(link);
}

static void test_file(void)
{
	char folder[] = "/tmp/gf-test-base.XXXXXX", *path, *data;
	struct gf_error err;
	struct gf_file f;
	struct stat st;
	size_t size;

	if (!mkdtemp(folder)) {
		EXPECT(0, "mkdtemp");
		return;
	}
	path = gf_xasprintf("%s/a", folder);
	EXPECT(gf_file_write(path, "one", 3, &err) == 0, "%s", err.text);
	EXPECT(gf_file_create(&f, path, &err) == 0, "%s", err.text);
	fputs("half", f.stream);
	gf_file_abandon(&f);
	EXPECT(gf_file_read(path, &data, &size, &err) == 0, "%s", err.text);
	EXPECT(size == 3 && !strcmp(data, "one"), "the old file stays");
	free(data);
	EXPECT(gf_file_write("/dev/full", "x", 1, &err) == -ENOSPC, "full");
	EXPECT_TEXT(err.text, "/dev/full: No space left on device");
	EXPECT(gf_file_read("/nonexistent/x", &data, &size, &err) == -ENOENT, "absent");
	test_modes(folder, path);
	EXPECT(unlink(path) == 0 && rmdir(folder) == 0, "nothing left behind");
	EXPECT(stat(folder, &st) != 0, "gone");
	free(path);
}

static void test_array(void)
{
	size_t *items = NULL, n = 0, capacity = 0, i;

	for (i = 0; i < 1000; i++)
		*gf_array_push(&items, &n, &capacity) = i;
	for (i = 0; i < n; i++)
		EXPECT(items[i] == i, "item %zu", i);
	EXPECT(n == 1000 && capacity >= n, "count");
	free(items);
}

static void test_clock(void)
{
	double at = gf_clock_s() + 0.002;

	gf_clock_sleep_until(at);
	EXPECT(gf_clock_s() >= at, "never early");
}

/* More items than a chunk has, all at once, keep apart; given back they come again, the last
 * first. */
static void test_slab(void)
{
	struct gf_slab s;
	char *items[200], *again;
	size_t i, k;

	gf_slab_init(&s, 24);
	for (i = 0; i < 200; i++) {
		items[i] = gf_slab_take(&s);
		for (k = 8; k < 24; k++)
			EXPECT(!items[i][k], "item %zu is zeroed", i);
		memset(items[i], (int)i, 24);
	}
	for (i = 0; i < 200; i++)
		for (k = 0; k < 24; k++)
			EXPECT((unsigned char)items[i][k] == i, "item %zu", i);
	gf_slab_give(&s, items[3]);
	gf_slab_give(&s, items[70]);
	again = gf_slab_take(&s);
	EXPECT(again == items[70] && again[23] == 70, "as it was");
	EXPECT(gf_slab_spare(&s) == items[3], "the other");
	gf_slab_release(&s);
	EXPECT(!gf_slab_spare(&s), "released");
}

int main(void)
{
	test_slab();
	test_digest();
	test_digest_pieces();
	test_units();
	test_rng();
	test_error();
	test_hidden();
	test_file();
	test_array();
	test_clock();
	return TEST_END();
}
