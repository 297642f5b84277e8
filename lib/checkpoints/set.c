/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/set.h"

#include <dirent.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/units.h"
#include "checkpoints/safetensors.h"
#include "json/record.h"

#define UNFINISHED ".tmp"
#define REPLACED   ".old"
/* The newest set and the one before it. */
#define KEPT_SETS  2
#define ASIDE      ".aside"
#define MOST_ASIDE 1000

static char *folder_of(const char *dir, size_t step, const char *ending)
{
	return gf_xasprintf("%s/step-%zu%s", dir, step, ending);
}

/* What a link in its place leads to is not ours. */
static int check_kind(const char *path, mode_t kind, struct gf_error *err)
{
	struct stat st;

	if (lstat(path, &st))
		return gf_error_errno(err, -errno, "%s", path);
	return (st.st_mode & S_IFMT) == kind
		       ? 0
		       : gf_error_set(err, -EEXIST, "%s: want a %s, found %s", path,
				      kind == S_IFDIR ? "folder" : "regular file",
				      S_ISLNK(st.st_mode) ? "a link" : "something else");
}

/* --- what lies in a folder ------------------------------------------------ */

/* The step of a name "step-N<ending>"; false for any other name. */
static bool step_of(const char *name, const char *ending, size_t *step)
{
	GF_FREED char *digits = NULL, *again = NULL;
	long long number;
	size_t length = strlen(name), tail = strlen(ending);
	bool good;

	if (strncmp(name, "step-", 5) != 0 || length < 5 + tail ||
	    strcmp(name + length - tail, ending) != 0)
		return false;
	digits = gf_xstrdup(name + 5);
	digits[length - 5 - tail] = '\0';
	good = gf_units_int(digits, 0, LLONG_MAX, &number, NULL) == 0;
	if (good) {
		/* one spelling per step: not 007, not +7 */
		again = gf_xasprintf("%lld", number);
		good = strcmp(again, digits) == 0;
		*step = (size_t)number;
	}
	return good;
}

GF_ORDER(falling, size_t, GF_BY(*y, *x))

static int list_steps(const char *dir, const char *ending, size_t **steps, size_t *count,
		      struct gf_error *err)
{
	size_t capacity = 0, step;
	struct dirent *entry;
	DIR *d;

	*steps = NULL;
	*count = 0;
	d = opendir(dir);
	if (!d)
		return gf_error_errno(err, -errno, "%s", dir);
	while ((entry = readdir(d)))
		if (step_of(entry->d_name, ending, &step))
			*gf_array_push(steps, count, &capacity) = step;
	closedir(d);
	if (*count)
		qsort(*steps, *count, sizeof(**steps), falling);
	return 0;
}

/* rank-R.safetensors, the manifest, or what an interrupted write left beside them. */
static bool is_part(const char *name)
{
	return (strncmp(name, "rank-", 5) == 0 && strstr(name, ".safetensors")) ||
	       strncmp(name, GF_MANIFEST_NAME, strlen(GF_MANIFEST_NAME)) == 0;
}

/* (What a link leads to is not ours.) */
static void remove_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (is_part(entry->d_name))
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(folder);
}

/* Is it a set of this run? An earlier version's does not say whose it is. */
static bool is_own(const char *dir, size_t step, const char *run, bool adopts)
{
	GF_RELEASED(gf_manifest_release) struct gf_manifest m = {0};

	if (gf_checkpoint_describe(dir, step, &m, NULL))
		return false;
	return m.run ? strcmp(m.run, run) == 0 : adopts;
}

/* Of this run: sets that would count as newer than that of `step`, and those older than the set
 * before it. */
static void remove_others(const char *dir, size_t step, const char *run, bool adopts)
{
	GF_FREED size_t *steps = NULL;
	size_t count, kept = 0;

	if (list_steps(dir, "", &steps, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		GF_FREED char *folder = folder_of(dir, steps[i], "");
		GF_FREED char *old = folder_of(dir, steps[i], REPLACED);

		if (!is_own(dir, steps[i], run, adopts))
			continue;
		if (steps[i] <= step && kept++ < KEPT_SETS)
			continue;
		/* a job that ends now leaves no half of a set */
		remove_folder(rename(folder, old) ? folder : old);
	}
}

static void remove_unfinished(const char *dir, const char *ending)
{
	GF_FREED size_t *steps = NULL;
	size_t count;

	if (list_steps(dir, ending, &steps, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		GF_FREED char *folder = folder_of(dir, steps[i], ending);

		remove_folder(folder);
	}
}

/* --- writing ------------------------------------------------------------- */

int gf_checkpoint_begin(const char *dir, size_t step, struct gf_error *err)
{
	GF_FREED char *folder = NULL;

	if (mkdir(dir, 0777) && errno != EEXIST)
		return gf_error_errno(err, -errno, "%s", dir);
	remove_unfinished(dir, UNFINISHED);
	remove_unfinished(dir, REPLACED);
	folder = folder_of(dir, step, UNFINISHED);
	return mkdir(folder, 0777) && errno != EEXIST ? gf_error_errno(err, -errno, "%s", folder)
						      : check_kind(folder, S_IFDIR, err);
}

char *gf_checkpoint_part(const char *dir, size_t step, int rank, bool unfinished)
{
	return gf_xasprintf("%s/step-%zu%s/rank-%d.safetensors", dir, step,
			    unfinished ? UNFINISHED : "", rank);
}

static int check_parts(const char *dir, size_t step, int ranks, bool unfinished,
		       struct gf_error *err)
{
	int rc = 0;

	for (int r = 0; r < ranks && !rc; r++) {
		GF_FREED char *part = gf_checkpoint_part(dir, step, r, unfinished);

		if (access(part, R_OK))
			rc = gf_error_set(err, -ENOENT,
					  "%s: want a file of every rank in one folder that all of "
					  "them share, found none of rank %d",
					  part, r);
	}
	return rc;
}

/* A set of the same step that is not this run's, or does not say whose it is, is kept under another
 * name. */
static int set_aside(const char *folder, struct gf_error *err)
{
	int rc = -EEXIST;

	for (int n = 1; n <= MOST_ASIDE && (rc == -EEXIST || rc == -ENOTEMPTY); n++) {
		GF_FREED char *to = gf_xasprintf("%s" ASIDE "-%d", folder, n);

		rc = rename(folder, to) ? -errno : 0;
	}
	return rc ? gf_error_errno(err, rc, "%s", folder) : 0;
}

/* A set of the same step, of before the run went back, makes way, and lies at `from` then. The two
 * exchange their names at once where the file system can: one of them is always in place. */
static int move_into_place(const char *from, const char *to, struct gf_error *err)
{
	GF_FREED char *old = NULL;
	int rc = 0;

	if (rename(from, to) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return gf_error_errno(err, -errno, "%s", to);
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
		return 0;
	old = gf_xasprintf("%s" REPLACED, to);
	if (rename(to, old)) {
		rc = gf_error_errno(err, -errno, "%s", to);
	} else if (rename(from, to)) {
		rc = gf_error_errno(err, -errno, "%s", to);
		rename(old, to);
	} else {
		rename(old, from);
	}
	return rc;
}

static int write_manifest(const char *folder, struct gf_manifest *m, struct gf_error *err)
{
	GF_FREED char *path = gf_xasprintf("%s/" GF_MANIFEST_NAME, folder);
	GF_FREED char *text = gf_manifest_text(m);
	struct gf_file f;
	return gf_file_create_own(&f, path, 0666, err) ?: gf_file_put(&f, text, strlen(text), err);
}

int gf_checkpoint_publish(const char *dir, struct gf_manifest *m, bool adopts, struct gf_error *err)
{
	GF_FREED char *from = folder_of(dir, m->step, UNFINISHED);
	GF_FREED char *to = folder_of(dir, m->step, "");
	struct stat st;
	int rc = check_kind(from, S_IFDIR, err);

	rc = rc ?: check_parts(dir, m->step, m->ranks, true, err);
	rc = rc ?: write_manifest(from, m, err);
	if (!rc && lstat(to, &st) == 0 && !is_own(dir, m->step, m->run, adopts))
		rc = set_aside(to, err);
	rc = rc ?: move_into_place(from, to, err);
	rc = rc ?: gf_file_sync_parent(to, err);
	if (!rc) {
		remove_folder(from); /* what has made way */
		remove_others(dir, m->step, m->run, adopts);
	}
	return rc;
}

void gf_checkpoint_discard(const char *dir, size_t step)
{
	GF_FREED char *folder = folder_of(dir, step, UNFINISHED);

	remove_folder(folder);
}

/* --- reading ------------------------------------------------------------- */

int gf_checkpoint_steps(const char *dir, size_t **steps, size_t *count, struct gf_error *err)
{
	return list_steps(dir, "", steps, count, err);
}

/* A set that has no manifest: parts that say no run are of a version that wrote none. */
static int describe_old(const char *dir, size_t step, const char *manifest, struct gf_manifest *m,
			struct gf_error *err)
{
	GF_RELEASED(gf_safetensors_close) struct gf_safetensors s = {0};
	size_t ranks;
	int rc = gf_checkpoint_open_part(dir, step, 0, &s, err);

	if (!rc && gf_safetensors_has_metadata(&s, GF_CHECKPOINT_RUN))
		rc = gf_error_set(err, -EINVAL, "%s: want the set's manifest, found none",
				  manifest);
	rc = rc ?: gf_safetensors_metadata_size(&s, GF_CHECKPOINT_RANKS, 1, INT_MAX, &ranks, err);
	if (!rc)
		*m = (struct gf_manifest){.step = step, .ranks = (int)ranks};
	return rc;
}

int gf_checkpoint_describe(const char *dir, size_t step, struct gf_manifest *m,
			   struct gf_error *err)
{
	GF_FREED char *folder = folder_of(dir, step, "");
	GF_FREED char *path = gf_xasprintf("%s/" GF_MANIFEST_NAME, folder);
	struct stat st;
	int rc = check_kind(folder, S_IFDIR, err);

	if (!rc && lstat(path, &st) && errno == ENOENT)
		rc = describe_old(dir, step, path, m, err);
	else if (!rc && !(rc = check_kind(path, S_IFREG, err)))
		rc = gf_manifest_read(path, step, m, err);
	return rc;
}

static int same_mark(const struct gf_safetensors *s, const char *key, const char *want,
		     struct gf_error *err)
{
	GF_FREED char *got = NULL;
	int rc = gf_safetensors_metadata(s, key, &got, err);

	if (!rc && strcmp(got, want) != 0)
		rc = gf_error_set(err, -EINVAL, "%s: want the part of %s %s, found that of %s %s",
				  s->path, key, want, key, got);
	return rc;
}

static int same_marks(const struct gf_safetensors *s, const struct gf_manifest *m, int rank,
		      struct gf_error *err)
{
	char number[32];
	int rc = same_mark(s, GF_CHECKPOINT_RUN, m->run, err);

	snprintf(number, sizeof(number), "%zu", m->step);
	rc = rc ?: same_mark(s, GF_CHECKPOINT_STEP, number, err);
	snprintf(number, sizeof(number), "%d", rank);
	return rc ?: same_mark(s, GF_CHECKPOINT_RANK, number, err);
}

static int same_seal(const struct gf_safetensors *s, const struct gf_checkpoint_file *want,
		     struct gf_error *err)
{
	struct gf_file_seal got;
	int rc = gf_safetensors_seal(s, &got, err);

	if (!rc && got.size_bytes != want->size_bytes)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want the %zu bytes that were written, found %zu", s->path,
				  want->size_bytes, got.size_bytes);
	if (!rc && strcmp(got.sha256, want->sha256) != 0)
		rc = gf_error_set(
			err, -EINVAL,
			"%s: want the contents that were written, with the SHA-256 %s, found %s",
			s->path, want->sha256, got.sha256);
	return rc;
}

int gf_checkpoint_open_part(const char *dir, size_t step, int rank, struct gf_safetensors *s,
			    struct gf_error *err)
{
	GF_FREED char *folder = folder_of(dir, step, "");
	GF_FREED char *path = gf_checkpoint_part(dir, step, rank, false);
	int rc = check_kind(folder, S_IFDIR, err);

	rc = rc ?: check_kind(path, S_IFREG, err);
	return rc ?: gf_safetensors_open(path, s, err);
}

int gf_checkpoint_check_part(const char *dir, const struct gf_manifest *m, int rank,
			     struct gf_error *err)
{
	GF_RELEASED(gf_safetensors_close) struct gf_safetensors s = {0};
	int rc = gf_checkpoint_open_part(dir, m->step, rank, &s, err);

	if (m->run) {
		rc = rc ?: same_marks(&s, m, rank, err);
		rc = rc ?: same_seal(&s, &m->files[rank], err);
	} else if (!rc && gf_safetensors_has_metadata(&s, GF_CHECKPOINT_RUN)) {
		rc = gf_error_set(err, -EINVAL,
				  "%s: want the part of an earlier version, as rank 0's is, found "
				  "that of a run",
				  s.path);
	}
	return rc;
}

#define AT(member) offsetof(struct gf_checkpoint_file, member)
static const struct gf_field file_fields[] = {
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED),
	 .schema = "\"pattern\": \"^rank-(0|[1-9][0-9]*)\\\\.safetensors$\""},
	{GF_MEMBER(size_bytes, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE},
	{GF_MEMBER(sha256, GF_FIELD_STRING, GF_REQUIRED)},
	{NULL},
};
#undef AT

static const struct gf_record file_record = {
	GF_RECORD(struct gf_checkpoint_file, file_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_checkpoint_parent, member)
static const struct gf_field parent_fields[] = {
	{GF_MEMBER(run, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(step, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE},
	{GF_MEMBER(sha256, GF_FIELD_STRING, GF_OMITTED)},
	{NULL},
};
#undef AT

static const struct gf_record parent_record = {
	GF_RECORD(struct gf_checkpoint_parent, parent_fields),
	.one_line = true,
};

/* Names come from a document: no others are ever opened. */
static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_manifest *m = item;
	int rc = 0;

	if (m->nfiles != (size_t)m->ranks)
		return gf_json_refuse(at, "files", err, "want a file of each of %d ranks, got %zu",
				      m->ranks, m->nfiles);
	for (size_t i = 0; i < m->nfiles && !rc; i++) {
		GF_FREED char *want = gf_xasprintf("rank-%zu.safetensors", i);

		if (strcmp(m->files[i].name, want) != 0)
			rc = gf_json_refuse(at, "files", err, "want %s at place %zu, got \"%s\"",
					    want, i, m->files[i].name);
	}
	return rc;
}

#define AT(member) offsetof(struct gf_manifest, member)
static const struct gf_field fields[] = {
	{GF_MEMBER(run, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(step, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE},
	{GF_MEMBER(ranks, GF_FIELD_INT, GF_REQUIRED), .low = 1, .high = INT_MAX},
	{GF_MEMBER(parent, GF_FIELD_OBJECT, GF_OMITTED), .record = &parent_record},
	{GF_MEMBER(settings, GF_FIELD_RAW, GF_REQUIRED)},
	{GF_MEMBERS(files, GF_FIELD_LIST, GF_REQUIRED), .record = &file_record},
	{GF_MEMBER(sha256, GF_FIELD_STRING, GF_REQUIRED)},
	{NULL},
};
#undef AT

static const struct gf_record record = {
	GF_RECORD(struct gf_manifest, fields),
	.finish = finish,
};

const struct gf_document_format gf_document_checkpoint = {
	.name = "gf-checkpoint",
	.description = "the manifest of a checkpoint's files",
	.record = &record,
};

/* --- its own digest ------------------------------------------------------ */

/* What stands after the digest of what stands before it. */
static const char tail[] = "\"\n}\n";

enum { DIGITS = GF_DIGEST_HEX - 1, TAIL = sizeof(tail) - 1 };

/* The digest that a text of that length must have; false: none can be. */
static bool seal_of(const char *text, size_t size, char hex[GF_DIGEST_HEX])
{
	char whole[GF_DIGEST_TEXT];

	if (size < DIGITS + TAIL || strcmp(text + size - TAIL, tail) != 0)
		return false;
	gf_digest_text(text, size - DIGITS - TAIL, whole);
	memcpy(hex, strchr(whole, ':') + 1, GF_DIGEST_HEX);
	return true;
}

char *gf_manifest_text(struct gf_manifest *m)
{
	char hex[GF_DIGEST_HEX] = "", *text;
	size_t size;

	free(m->sha256);
	m->sha256 = gf_xmalloc(GF_DIGEST_HEX);
	memset(m->sha256, '0', DIGITS);
	m->sha256[DIGITS] = '\0';
	text = gf_document_write(&gf_document_checkpoint, m);
	size = strlen(text);
	if (seal_of(text, size, hex)) {
		memcpy(text + size - DIGITS - TAIL, hex, DIGITS);
		memcpy(m->sha256, hex, GF_DIGEST_HEX);
	}
	return text;
}

static int check_seal(const char *path, const char *text, size_t size, struct gf_error *err)
{
	char want[GF_DIGEST_HEX];

	if (strlen(text) != size || !seal_of(text, size, want))
		return gf_error_set(
			err, -EINVAL,
			"%s: want a manifest that ends in its digest, found another end", path);
	if (memcmp(text + size - DIGITS - TAIL, want, DIGITS) != 0)
		return gf_error_set(
			err, -EINVAL,
			"%s: want the contents that were written, with the SHA-256 %.*s, found %s",
			path, DIGITS, text + size - DIGITS - TAIL, want);
	return 0;
}

/* --- the interface ------------------------------------------------------- */

int gf_manifest_read(const char *path, size_t step, struct gf_manifest *m, struct gf_error *err)
{
	struct gf_manifest got = {0};
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	GF_FREED char *text = NULL;
	size_t size;
	int rc = gf_file_read_regular(path, &text, &size, err);

	rc = rc ?: check_seal(path, text, size, err);
	rc = rc ?: gf_json_parse(text, size, path, &root, err);
	rc = rc ?: gf_document_read(root, path, &gf_document_checkpoint, &got, err);
	if (!rc && got.step != step) {
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a manifest of step %zu, found one of step %zu", path,
				  step, got.step);
		gf_record_release(&record, &got);
	}
	if (!rc)
		*m = got;
	return rc;
}

void gf_manifest_copy(struct gf_manifest *to, const struct gf_manifest *from)
{
	gf_record_copy(&record, to, from);
}

void gf_manifest_release(struct gf_manifest *m)
{
	gf_record_release(&record, m);
}
