/* SPDX-License-Identifier: BSD-3-Clause */
#include "ckpt/set.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/units.h"
#include "ckpt/safetensors.h"

#define UNFINISHED ".tmp"
#define REPLACED   ".old"
/* The newest set and the one before it. */
#define KEPT_SETS 2

static char *folder_of(const char *dir, size_t step, const char *ending)
{
	return gf_xasprintf("%s/step-%zu%s", dir, step, ending);
}

/* --- what lies in a folder ------------------------------------------------ */

/* The step of a name "step-N<ending>"; false for any other name. */
static bool step_of(const char *name, const char *ending, size_t *step)
{
	char *digits, *again;
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
		free(again);
		*step = (size_t)number;
	}
	free(digits);
	return good;
}

static int falling(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x > y ? -1 : x < y;
}

/* The steps that have a folder with that ending, newest first. */
static int list_steps(const char *dir, const char *ending, size_t **steps,
		      size_t *count, struct gf_error *err)
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

/* rank-R.safetensors, or what an interrupted write left beside it. */
static bool is_part(const char *name)
{
	return strncmp(name, "rank-", 5) == 0 && strstr(name, ".safetensors");
}

static void remove_folder(const char *folder)
{
	struct dirent *entry;
	DIR *d = opendir(folder);

	while (d && (entry = readdir(d)))
		if (is_part(entry->d_name))
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(folder);
}

/* Sets that would count as newer than that of `step`. */
static void remove_newer(const char *dir, size_t step)
{
	size_t *steps, count, i;

	if (list_steps(dir, "", &steps, &count, NULL))
		return;
	for (i = 0; i < count && steps[i] > step; i++) {
		char *folder = folder_of(dir, steps[i], "");

		remove_folder(folder);
		free(folder);
	}
	free(steps);
}

static void remove_all(const char *dir, const char *ending, size_t spared)
{
	size_t *steps, count, i;

	if (list_steps(dir, ending, &steps, &count, NULL))
		return;
	for (i = spared; i < count; i++) {
		char *folder = folder_of(dir, steps[i], ending);

		remove_folder(folder);
		free(folder);
	}
	free(steps);
}

/* --- writing ------------------------------------------------------------- */

static int make_folder(const char *path, struct gf_error *err)
{
	struct stat st;

	if (mkdir(path, 0777) == 0)
		return 0;
	if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return gf_error_errno(err, -errno, "%s", path);
}

int gf_ckpt_try(const char *dir, struct gf_error *err)
{
	bool made = mkdir(dir, 0777) == 0;
	char *inside = gf_xasprintf("%s/try-XXXXXX", dir);
	int rc = made ? 0 : make_folder(dir, err);

	if (!rc && !mkdtemp(inside))
		rc = gf_error_errno(err, -errno, "%s", dir);
	else if (!rc)
		rmdir(inside);
	if (made)
		rmdir(dir);
	free(inside);
	return rc;
}

int gf_ckpt_begin(const char *dir, size_t step, struct gf_error *err)
{
	char *folder;
	int rc;

	rc = make_folder(dir, err);
	if (rc)
		return rc;
	remove_all(dir, UNFINISHED, 0);
	remove_all(dir, REPLACED, 0);
	folder = folder_of(dir, step, UNFINISHED);
	rc = make_folder(folder, err);
	free(folder);
	return rc;
}

char *gf_ckpt_part(const char *dir, size_t step, int rank, bool unfinished)
{
	return gf_xasprintf("%s/step-%zu%s/rank-%d.safetensors", dir, step,
			    unfinished ? UNFINISHED : "", rank);
}

static int check_parts(const char *dir, size_t step, int ranks, bool unfinished,
		       struct gf_error *err)
{
	int r, rc = 0;

	for (r = 0; r < ranks && !rc; r++) {
		char *part = gf_ckpt_part(dir, step, r, unfinished);

		if (access(part, R_OK))
			rc = gf_error_set(err, -ENOENT,
					  "%s: want a file of every rank in "
					  "one folder that all of them share, "
					  "found none of rank %d",
					  part, r);
		free(part);
	}
	return rc;
}

/* A set of the same step (of an earlier run) makes way. */
static int move_into_place(const char *from, const char *to,
			   struct gf_error *err)
{
	char *old;
	int rc = 0;

	if (rename(from, to) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return gf_error_errno(err, -errno, "%s", to);
	old = gf_xasprintf("%s" REPLACED, to);
	if (rename(to, old)) {
		rc = gf_error_errno(err, -errno, "%s", to);
	} else if (rename(from, to)) {
		rc = gf_error_errno(err, -errno, "%s", to);
		rename(old, to);
	} else {
		remove_folder(old);
	}
	free(old);
	return rc;
}

int gf_ckpt_publish(const char *dir, size_t step, int ranks,
		    struct gf_error *err)
{
	char *from = folder_of(dir, step, UNFINISHED);
	char *to = folder_of(dir, step, "");
	int rc;

	rc = check_parts(dir, step, ranks, true, err);
	if (!rc)
		rc = move_into_place(from, to, err);
	if (!rc)
		rc = gf_file_sync_parent(to, err);
	if (!rc) {
		remove_newer(dir, step);
		remove_all(dir, "", KEPT_SETS);
	}
	free(from);
	free(to);
	return rc;
}

void gf_ckpt_discard(const char *dir, size_t step)
{
	char *folder = folder_of(dir, step, UNFINISHED);

	remove_folder(folder);
	free(folder);
}

/* --- reading ------------------------------------------------------------- */

static int check_set(const char *dir, size_t step, struct gf_error *err)
{
	char *first = gf_ckpt_part(dir, step, 0, false);
	struct gf_safetensors s = {0};
	size_t ranks;
	int rc;

	rc = gf_safetensors_open(first, &s, err);
	if (!rc)
		rc = gf_safetensors_metadata_size(&s, GF_CKPT_RANKS, 1, INT_MAX,
						  &ranks, err);
	if (!rc)
		rc = check_parts(dir, step, (int)ranks, false, err);
	gf_safetensors_close(&s);
	free(first);
	return rc;
}

int gf_ckpt_latest(const char *dir, size_t *step, struct gf_error *err)
{
	struct gf_error why = {""}, first = {""};
	size_t *steps, count, i;
	int rc;

	rc = list_steps(dir, "", &steps, &count, err);
	if (rc)
		return rc;
	rc = gf_error_set(err, -ENOENT,
			  "%s: want a complete checkpoint (a folder step-N), "
			  "found none",
			  dir);
	for (i = 0; i < count; i++) {
		if (check_set(dir, steps[i], &why) == 0) {
			*step = steps[i];
			rc = 0;
			break;
		}
		if (i == 0)
			first = why;
	}
	if (rc && count)
		gf_error_set(err, rc,
			     "%s: want a complete checkpoint, found none: %s",
			     dir, first.text);
	free(steps);
	return rc;
}

bool gf_ckpt_passed_over(const char *dir, size_t step, struct gf_error *why)
{
	size_t *steps, count;
	bool newer;

	if (list_steps(dir, "", &steps, &count, NULL))
		return false;
	newer = count > 0 && steps[0] > step &&
		check_set(dir, steps[0], why) != 0;
	free(steps);
	return newer;
}

bool gf_ckpt_any(const char *dir)
{
	size_t *steps, count;

	if (list_steps(dir, "", &steps, &count, NULL))
		return false;
	free(steps);
	return count > 0;
}
