/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets: when one is whole, and which are removed. Nothing damaged passes for one, nor anything of
 * another run, step or rank. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/text.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/set.h"
#include "folder.h"
#include "test.h"

#define RANKS 3
#define RUN   "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"

static char *in_folder(const char *name)
{
	return gf_xasprintf("%s/%s", folder, name);
}

static bool there(const char *dir, const char *name)
{
	char *path = gf_xasprintf("%s/%s", dir, name);
	bool is = access(path, F_OK) == 0;

	free(path);
	return is;
}

/* A part with a few numbers that are its own. run NULL: as earlier versions wrote them. */
static void write_part(const char *dir, size_t step, int rank, const char *run,
		       struct gf_file_seal *seal)
{
	char *path = gf_checkpoint_part(dir, step, rank, true);
	float values[8] = {(float)step, (float)rank, run ? (float)run[0] : 0};
	const struct gf_tensor_source t = {"w", "F32", 1, {8}, values};
	char number[3][32];
	const struct gf_metadata metadata[] = {
		{GF_CHECKPOINT_RANKS, number[0]},
		{GF_CHECKPOINT_STEP, number[1]},
		{GF_CHECKPOINT_RANK, number[2]},
		{GF_CHECKPOINT_RUN, run},
	};
	struct gf_file_seal ignored;
	struct gf_error err = {""};

	snprintf(number[0], 32, "%d", RANKS);
	snprintf(number[1], 32, "%zu", step);
	snprintf(number[2], 32, "%d", rank);
	EXPECT(gf_safetensors_write(path, &t, 1, metadata, run ? 4 : 2, seal ? seal : &ignored,
				    &err) == 0,
	       "%s", err.text);
	free(path);
}

static int publish_of(const char *dir, size_t step, const char *run, int written,
		      struct gf_error *err)
{
	struct gf_checkpoint_file files[RANKS] = {{0}};
	struct gf_file_seal seals[RANKS];
	struct gf_manifest m = {.run = (char *)run,
				.step = step,
				.ranks = RANKS,
				.settings = "{\"model\": \"m\"}",
				.files = files,
				.nfiles = RANKS};
	int r, rc = gf_checkpoint_begin(dir, step, err);

	for (r = 0; !rc && r < RANKS; r++) {
		if (r < written)
			write_part(dir, step, r, run, &seals[r]);
		files[r] =
			(struct gf_checkpoint_file){.name = gf_xasprintf("rank-%d.safetensors", r),
						    .size_bytes = seals[r].size_bytes,
						    .sha256 = seals[r].sha256};
	}
	rc = rc ? rc : gf_checkpoint_publish(dir, &m, false, err);
	for (r = 0; r < RANKS; r++)
		free(files[r].name);
	free(m.sha256);
	return rc;
}

static int publish(const char *dir, size_t step, struct gf_error *err)
{
	return publish_of(dir, step, RUN, RANKS, err);
}

/* Is the whole set what it says it is? */
static int check(const char *dir, size_t step, struct gf_error *err)
{
	struct gf_manifest m = {0};
	int r, rc = gf_checkpoint_describe(dir, step, &m, err);

	for (r = 0; !rc && r < m.ranks; r++)
		rc = gf_checkpoint_check_part(dir, &m, r, err);
	gf_manifest_release(&m);
	return rc;
}

static size_t newest(const char *dir)
{
	size_t *steps = NULL, count = 0, first;

	if (gf_checkpoint_steps(dir, &steps, &count, NULL))
		return SIZE_MAX;
	first = count ? steps[0] : SIZE_MAX;
	free(steps);
	return first;
}

/* --- what is on the disk when ----------------------------------------------
 */

/* "sync PATH" and "rename FROM TO", one a line, since it was emptied; paths are the folder's own,
 * and the end of a temporary name is left out. */
static struct gf_text calls;

static void add_path(const char *path)
{
	const char *name =
		strncmp(path, folder, strlen(folder)) == 0 ? path + strlen(folder) : path;
	const char *dot = strrchr(name, '.');
	const bool temporary = dot && strlen(dot) == 7 && strspn(dot + 1, "0123456789abcdef") == 6;

	gf_text_addf(&calls, " %.*s%s", temporary ? (int)(dot - name) : (int)strlen(name), name,
		     temporary ? ".~" : "");
}

/* In the place of libc's. */
int fsync(int fd)
{
	char link[64], path[512];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	gf_text_addf(&calls, "sync");
	add_path(path);
	gf_text_addf(&calls, "\n");
	return (int)syscall(SYS_fsync, fd);
}

/* Between two names a set that makes way has neither. */
static bool dies_halfway;

int rename(const char *from, const char *to)
{
	const size_t length = strlen(to);
	const bool halfway = length > 4 && strcmp(to + length - 4, ".old") == 0;

	gf_text_addf(&calls, "rename");
	add_path(from);
	add_path(to);
	gf_text_addf(&calls, "\n");
	if (dies_halfway && halfway) {
		syscall(SYS_rename, from, to);
		_exit(0);
	}
	return (int)syscall(SYS_rename, from, to);
}

#define PART(step, name)                                                                           \
	"sync /d/step-" step ".tmp/" name ".~\n"                                                   \
	"rename /d/step-" step ".tmp/" name ".~ /d/step-" step ".tmp/" name "\nsync /d/step-" step \
	".tmp\n"
#define PARTS(step)                                                                                \
	PART(step, "rank-0.safetensors")                                                           \
	PART(step, "rank-1.safetensors")                                                           \
	PART(step, "rank-2.safetensors")                                                           \
	PART(step, "manifest.json")                                                                \
	"rename /d/step-" step ".tmp /d/step-" step "\nsync /d\n"

/* Contents come before names, and all of a set before the set; a set that goes does so in one
 * step. */
static void test_order(void)
{
	const struct gf_checkpoint_claim claim = {.job = "j"};
	char *dir = in_folder("d"), *slashed = in_folder("d//");
	struct gf_error err = {""};
	struct gf_checkpoint_owner *owner;

	gf_text_release(&calls);
	owner = gf_checkpoint_claim(slashed, &claim);
	EXPECT(!gf_checkpoint_claim_poll(owner, &err), "%s", err.text);
	EXPECT_TEXT(calls.data ? calls.data : "", "sync \n");
	gf_text_release(&calls);
	EXPECT(!publish(dir, 7, &err), "%s", err.text);
	EXPECT_TEXT(calls.data, PARTS("7"));
	EXPECT(!publish(dir, 8, &err), "%s", err.text);
	gf_text_release(&calls);
	EXPECT(!publish(dir, 9, &err), "%s", err.text);
	EXPECT_TEXT(calls.data, PARTS("9") "rename /d/step-7 /d/step-7.old\n");
	EXPECT(!there(dir, "step-7.old"), "removed");
	gf_checkpoint_release(owner);
	free(slashed);
	free(dir);
}

/* --- what is kept, and what is removed ----------------------------------- */

static void test_sets(void)
{
	char *dir = in_folder("sets"), *stray;
	struct gf_error err = {""};

	EXPECT(newest(dir) == SIZE_MAX, "no folder");
	EXPECT(publish(dir, 9, &err) == 0, "%s", err.text);
	EXPECT(check(dir, 9, &err) == 0, "%s", err.text);
	/* numbers, not names: 10 is newer than 9 */
	EXPECT(publish(dir, 10, &err) == 0 && newest(dir) == 10, "%s", err.text);
	EXPECT(there(dir, "step-9") && there(dir, "step-10"), "previous kept");
	EXPECT(publish(dir, 11, &err) == 0, "%s", err.text);
	EXPECT(!there(dir, "step-9") && there(dir, "step-10"), "older removed");

	/* a rank has not written: nothing changes */
	EXPECT(publish_of(dir, 12, RUN, 2, &err) == -ENOENT &&
		       strstr(err.text, "found none of rank 2"),
	       "%s", err.text);
	EXPECT(there(dir, "step-12.tmp") && !there(dir, "step-12") && there(dir, "step-10") &&
		       newest(dir) == 11,
	       "untouched");
	gf_checkpoint_discard(dir, 12);
	EXPECT(!there(dir, "step-12.tmp"), "discarded");

	/* what a killed run left is removed by the next, foreign files stay */
	EXPECT(gf_checkpoint_begin(dir, 13, &err) == 0, "%s", err.text);
	write_part(dir, 13, 0, RUN, NULL);
	stray = gf_xasprintf("%s/step-7.tmp/notes", dir);
	EXPECT(gf_checkpoint_begin(dir, 7, &err) == 0, "%s", err.text);
	EXPECT(!there(dir, "step-13.tmp"), "left over");
	gf_file_write(stray, "x", 1, NULL);
	EXPECT(publish(dir, 14, &err) == 0, "%s", err.text);
	EXPECT(there(dir, "step-7.tmp/notes"), "not ours");

	/* the same step again replaces the set */
	EXPECT(publish(dir, 14, &err) == 0, "%s", err.text);
	EXPECT(there(dir, "step-14/manifest.json") && !there(dir, "step-14.old") &&
		       !there(dir, "step-14.tmp"),
	       "replaced");

	/* a run that went back: its set is the newest */
	EXPECT(publish(dir, 13, &err) == 0 && newest(dir) == 13 && !there(dir, "step-14") &&
		       there(dir, "step-11"),
	       "%s", err.text);
	unlink(stray);
	free(stray);
	free(dir);
}

/* A job that ends while a set takes the place of another of its step: one of the two is there,
 * where the file system can exchange names. */
static void test_halfway(void)
{
	char *dir = in_folder("halfway"), *other = in_folder("other");
	struct gf_error err = {""};
	int status = -1;
	pid_t child;

	mkdir(dir, 0777);
	mkdir(other, 0777);
	if (renameat2(AT_FDCWD, dir, AT_FDCWD, other, RENAME_EXCHANGE) == 0) {
		EXPECT(publish(dir, 5, &err) == 0, "%s", err.text);
		child = fork();
		if (child == 0) {
			dies_halfway = true;
			_exit(publish(dir, 5, &err) != 0);
		}
		waitpid(child, &status, 0);
		EXPECT(status == 0 && newest(dir) == 5 && check(dir, 5, &err) == 0, "%d: %s",
		       status, err.text);
		EXPECT(!there(dir, "step-5.tmp"), "removed");
	}
	free(other);
	free(dir);
}

/* Nothing of another run is ever removed, nor what does not say whose it is. */
static void test_others(void)
{
	char *dir = in_folder("others"), *path;
	struct gf_error err = {""};

	EXPECT(publish_of(dir, 20, OTHER, RANKS, &err) == 0, "%s", err.text);
	EXPECT(publish_of(dir, 8, OTHER, RANKS, &err) == 0, "%s", err.text);
	EXPECT(!there(dir, "step-20"), "its own run's");
	EXPECT(publish_of(dir, 20, OTHER, RANKS, &err) == 0, "%s", err.text);
	EXPECT(publish(dir, 9, &err) == 0 && publish(dir, 10, &err) == 0 &&
		       publish(dir, 11, &err) == 0,
	       "%s", err.text);
	EXPECT(there(dir, "step-20") && there(dir, "step-8") && !there(dir, "step-9"),
	       "another run's, older and newer");
	EXPECT(publish(dir, 20, &err) == 0, "%s", err.text);
	EXPECT(there(dir, "step-20") && there(dir, "step-20.aside-1") && check(dir, 20, &err) == 0,
	       "another run's of the same step: %s", err.text);
	EXPECT(publish_of(dir, 20, OTHER, RANKS, &err) == 0, "%s", err.text);
	EXPECT(there(dir, "step-20.aside-1") && there(dir, "step-20.aside-2"), "and once more");
	path = gf_xasprintf("%s/step-20/" GF_MANIFEST_NAME, dir);
	EXPECT(truncate(path, 30) == 0, "truncate");
	EXPECT(publish(dir, 12, &err) == 0 && there(dir, "step-20"),
	       "a manifest that cannot be read");
	free(path);
	free(dir);
}

/* Links in a folder of sets: whatever they stand for, what is behind them stays as it is, and is no
 * set. */
static void test_link(void)
{
	static const struct {
		const char *name, *to;
		int rc;      /* of publishing step 4 */
		bool unread; /* step 4, when it was published before */
	} cases[] = {
		{"step-3.tmp", "../target/step-3", 0, false},
		{"step-4.tmp", "../target/step-3", -EEXIST, false},
		{"step-4.old", "../target/step-3", 0, false},
		{"step-4", "../target/step-3", 0, true},
		{"step-4", "nowhere", 0, true},
		{"step-4/manifest.json", "../../target/step-3/manifest.json", 0, true},
		{"step-4/rank-0.safetensors", "../../target/step-3/rank-0.safetensors", 0, true},
	};
	char *dir = in_folder("linked"), *target = in_folder("target");
	struct gf_error err = {""};
	size_t i;

	EXPECT(publish(target, 3, &err) == 0, "%s", err.text);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *link = gf_xasprintf("%s/%s", dir, cases[i].name);
		char *within = gf_xasprintf("%s/step-4", dir);

		mkdir(dir, 0777);
		if (strchr(cases[i].name, '/'))
			mkdir(within, 0777);
		EXPECT(!symlink(cases[i].to, link), "%s", link);
		EXPECT(!cases[i].unread || check(dir, 4, &err), "%s is read", link);
		EXPECT(publish(dir, 4, &err) == cases[i].rc, "%s: %s", link, err.text);
		EXPECT(cases[i].rc || !check(dir, 4, &err), "%s: %s", link, err.text);
		EXPECT(check(target, 3, &err) == 0, "%s: %s", link, err.text);
		free(link);
		free(within);
		link = gf_xasprintf("rm -r %s", dir);
		EXPECT(system(link) == 0, "%s", link);
		free(link);
	}
	free(target);
	free(dir);
}

static void test_names(void)
{
	static const char *const names[] = {
		"step-007",   "step-+7",        "step-",   "step-7x",
		"step-7.tmp", "Step-7",         "step--7", "step-99999999999999999999",
		"step-7.old", "step-7.aside-1", "lock"};
	char *dir = in_folder("names");
	size_t i;

	mkdir(dir, 0777);
	for (i = 0; i < GF_ARRAY_LENGTH(names); i++) {
		char *path = gf_xasprintf("%s/%s", dir, names[i]);

		mkdir(path, 0777);
		EXPECT(newest(dir) == SIZE_MAX, "%s", names[i]);
		rmdir(path);
		free(path);
	}
	free(dir);
}

/* --- what is refused ------------------------------------------------------ */

static char *part(const char *dir, size_t step, int rank)
{
	return gf_checkpoint_part(dir, step, rank, false);
}

static void copy_file(const char *from, const char *to)
{
	char *data = NULL;
	size_t size = 0;
	struct gf_error err = {""};

	EXPECT(!gf_file_read(from, &data, &size, &err) && !gf_file_write(to, data, size, &err),
	       "%s", err.text);
	free(data);
}

/* The set of step 7 is refused, with that file's name and these words; whole again, it is taken. */
static void refused(const char *dir, const char *file, const char *words)
{
	struct gf_error err = {""};
	char *name = gf_xasprintf("%s: ", file);
	int rc = check(dir, 7, &err);

	EXPECT(rc && strstr(err.text, name) && strstr(err.text, words),
	       "%d: want \"%s\" of %s, got \"%s\"", rc, words, file, err.text);
	EXPECT(publish(dir, 7, &err) == 0 && check(dir, 7, &err) == 0, "%s", err.text);
	free(name);
}

static void test_foreign(void)
{
	char *dir = in_folder("foreign"), *other = in_folder("other");
	char *files[RANKS], *path, *manifest;
	struct gf_error err = {""};
	int r;

	EXPECT(publish(dir, 7, &err) == 0, "%s", err.text);
	EXPECT(publish(other, 8, &err) == 0, "%s", err.text);
	EXPECT(publish_of(other, 7, OTHER, RANKS, &err) == 0, "%s", err.text);
	manifest = gf_xasprintf("%s/step-7/" GF_MANIFEST_NAME, dir);
	for (r = 0; r < RANKS; r++)
		files[r] = part(dir, 7, r);

	/* two ranks' files change places */
	path = gf_xasprintf("%s.x", files[1]);
	rename(files[1], path);
	rename(files[2], files[1]);
	rename(path, files[2]);
	refused(dir, files[1], "want the part of rank 1, found that of rank 2");
	free(path);

	path = part(other, 7, 1);
	copy_file(path, files[1]);
	refused(dir, files[1], "want the part of run " RUN ", found that of run " OTHER);
	free(path);

	EXPECT(publish(other, 8, &err) == 0, "%s", err.text);
	path = part(other, 8, 1);
	copy_file(path, files[1]);
	refused(dir, files[1], "want the part of step 7, found that of step 8");
	free(path);

	/* a whole folder of another step */
	path = gf_xasprintf("rm -rf %s/step-7; cp -r %s/step-8 %s/step-7", dir, other, dir);
	EXPECT(system(path) == 0, "%s", path);
	refused(dir, manifest, "want a manifest of step 7, found one of step 8");
	free(path);

	unlink(manifest);
	refused(dir, manifest, "want the set's manifest, found none");
	EXPECT(!unlink(manifest) && !mkfifo(manifest, 0600), "%s", manifest);
	refused(dir, manifest, "want a regular file");
	unlink(files[2]);
	refused(dir, files[2], "No such file");
	for (r = 0; r < RANKS; r++)
		free(files[r]);
	free(manifest);
	free(other);
	free(dir);
}

/* The same run, step and rank, as two jobs that went on from one set may have made them: the digest
 * tells them apart. */
static void test_fork(void)
{
	char *dir = in_folder("fork"), *path = part(dir, 7, 1);
	const float values[8] = {1, 2, 3};
	const struct gf_tensor_source t = {"w", "F32", 1, {8}, values};
	const struct gf_metadata metadata[] = {
		{GF_CHECKPOINT_RANKS, "3"},
		{GF_CHECKPOINT_STEP, "7"},
		{GF_CHECKPOINT_RANK, "1"},
		{GF_CHECKPOINT_RUN, RUN},
	};
	struct gf_file_seal seal;
	struct gf_error err = {""};

	EXPECT(publish(dir, 7, &err) == 0, "%s", err.text);
	EXPECT(!gf_safetensors_write(path, &t, 1, metadata, 4, &seal, &err), "%s", err.text);
	refused(dir, path,
		"want the contents that were written, with the "
		"SHA-256 ");
	free(path);
	free(dir);
}

enum damage { FLIP, CUT, APPEND, DAMAGES };

static void damage(const char *path, enum damage how, size_t at, struct gf_rng *rng)
{
	unsigned char byte;
	FILE *f = fopen(path, "r+");

	EXPECT(f, "%s", path);
	if (how == FLIP) {
		fseek(f, (long)at, SEEK_SET);
		byte = (unsigned char)fgetc(f);
		byte ^= (unsigned char)(1u << gf_rng_below(rng, 8));
		fseek(f, (long)at, SEEK_SET);
		fputc(byte, f);
	} else if (how == CUT) {
		EXPECT(!ftruncate(fileno(f), (off_t)at), "%s", path);
	} else {
		fseek(f, 0, SEEK_END);
		for (at = at % 9 + 1; at > 0; at--)
			fputc(0, f);
	}
	fclose(f);
}

static void put(const char *path, const char *data, size_t size)
{
	FILE *f = fopen(path, "w");

	EXPECT(f && fwrite(data, 1, size, f) == size && !fclose(f), "%s", path);
}

/* A bit of every byte of every file, its header and the manifest included; a file that ends at any
 * of them, and one that goes on. */
static void test_damage(void)
{
	char *dir = in_folder("damage");
	struct gf_error err = {""};
	struct gf_rng rng;
	size_t size = 0, i;
	int how, r;

	gf_rng_init(&rng, 17, 0);
	EXPECT(publish(dir, 7, &err) == 0, "%s", err.text);
	for (r = 0; r <= RANKS; r++) {
		char *path = r < RANKS ? part(dir, 7, r)
				       : gf_xasprintf("%s/step-7/%s", dir, GF_MANIFEST_NAME);
		char *name = gf_xasprintf("%s:", path), *whole = NULL;

		EXPECT(!gf_file_read(path, &whole, &size, &err), "%s", err.text);
		for (how = 0; how < DAMAGES; how++)
			for (i = 0; i < size; i++) {
				int rc;

				damage(path, (enum damage)how, i, &rng);
				rc = check(dir, 7, &err);
				EXPECT(rc && strstr(err.text, name), "%s, damage %d, %zu: %d %s",
				       path, how, i, rc, rc ? err.text : "");
				put(path, whole, size);
			}
		EXPECT(check(dir, 7, &err) == 0, "%s", err.text);
		free(whole);
		free(name);
		free(path);
	}
	free(dir);
}

/* No room for the manifest: the set before stays the newest. */
static void test_full(void)
{
	const struct rlimit full = {100, RLIM_INFINITY};
	struct rlimit before;
	char *dir = in_folder("full");
	struct gf_file_seal seals[RANKS];
	struct gf_checkpoint_file files[RANKS];
	struct gf_manifest m = {.run = RUN,
				.step = 8,
				.ranks = RANKS,
				.settings = "{}",
				.files = files,
				.nfiles = RANKS};
	struct gf_error err = {""};
	int r, rc;

	EXPECT(publish(dir, 7, &err) == 0 && !gf_checkpoint_begin(dir, 8, &err), "%s", err.text);
	for (r = 0; r < RANKS; r++) {
		write_part(dir, 8, r, RUN, &seals[r]);
		files[r] = (struct gf_checkpoint_file){"x", 1, "y", NULL};
	}
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	setrlimit(RLIMIT_FSIZE, &full);
	rc = gf_checkpoint_publish(dir, &m, false, &err);
	setrlimit(RLIMIT_FSIZE, &before);
	EXPECT(rc == -EFBIG && strstr(err.text, "/step-8.tmp/manifest.json: "), "%d: %s", rc,
	       err.text);
	gf_checkpoint_discard(dir, 8);
	EXPECT(!there(dir, "step-8.tmp") && newest(dir) == 7 && check(dir, 7, &err) == 0, "%s",
	       err.text);
	free(m.sha256);
	free(dir);
}

/* Sets of earlier versions have neither manifests nor names of runs. */
static void test_old(void)
{
	char *dir = in_folder("old"), *from, *to, *path, *run;
	struct gf_manifest m = {0};
	struct gf_error err = {""};
	int r;

	gf_checkpoint_begin(dir, 5, &err);
	for (r = 0; r < RANKS; r++)
		write_part(dir, 5, r, NULL, NULL);
	from = gf_xasprintf("%s/step-5.tmp", dir);
	to = gf_xasprintf("%s/step-5", dir);
	rename(from, to);
	EXPECT(gf_checkpoint_describe(dir, 5, &m, &err) == 0 && !m.run && m.ranks == RANKS &&
		       m.step == 5,
	       "%s", err.text);
	gf_manifest_release(&m);
	EXPECT(check(dir, 5, &err) == 0, "%s", err.text);
	path = part(dir, 5, 1);
	gf_checkpoint_begin(dir, 6, &err);
	write_part(dir, 6, 1, RUN, NULL);
	run = gf_checkpoint_part(dir, 6, 1, true);
	copy_file(run, path);
	EXPECT(check(dir, 5, &err) == -EINVAL && strstr(err.text, path), "%s", err.text);
	free(run);
	EXPECT(truncate(path, 40) == 0 && check(dir, 5, &err) == -EINVAL && strstr(err.text, path),
	       "%s", err.text);
	free(path);
	free(from);
	free(to);
	free(dir);
}

int main(void)
{
	make_folder("test_ckpt_set");
	test_order();
	test_sets();
	test_halfway();
	test_others();
	test_link();
	test_names();
	test_foreign();
	test_fork();
	test_damage();
	test_full();
	test_old();
	gf_text_release(&calls);
	return TEST_END();
}
