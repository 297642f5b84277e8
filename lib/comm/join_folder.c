/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks meet in a folder. Each file is written whole and renamed.
 *
 *   rank-N      rank N is here; the key is drawn anew by each process
 *   rank-0      the roll: rank 0's key is the job's, and the keys of the others
 *               that it has seen follow; or the reason why there is no job
 *   JOB-K-N     what rank N shows in round K
 *
 * Files of an earlier job lie there, perhaps. Rank N believes a roll that has
 * its own key, and repeats its file with the job's; rank 0 counts those that
 * repeat its own. So no file of another job is taken for one of this. At the
 * end rank 0 removes what the job has written.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "comm/join_state.h"

#define OPENED     1
#define POLL_MIN_S 1e-3
#define POLL_CAP_S 5e-2
/* What follows in a roll, and then the keys. */
struct verdict {
	int32_t rc; /* 0: not yet; OPENED; or why there is no job */
	int32_t unused;
	struct gf_error reason;
};

struct folder {
	struct gf_join_key own, job;
	uint64_t round;
	bool *come; /* per rank */
	/* rank 0 */
	struct gf_join_key *keys;
	struct verdict verdict;
};

static bool same(const struct gf_join_key *a, const struct gf_join_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static struct folder *of(const struct gf_join_place *p)
{
	return p->priv;
}

static char *rank_path(const struct gf_join_place *p, int rank)
{
	return gf_xasprintf("%s/rank-%d", p->name, rank);
}

static char *round_path(const struct gf_join_place *p, uint64_t round, int rank)
{
	const struct gf_join_key *job = &of(p)->job;

	return gf_xasprintf("%s/%016llx%016llx-%llu-%d", p->name,
			    (unsigned long long)job->halves[0],
			    (unsigned long long)job->halves[1],
			    (unsigned long long)round, rank);
}

/* Takes the path. */
static int write_path(const struct gf_join_place *p, char *path,
		      const void *data, size_t size_bytes, struct gf_error *err)
{
	const struct gf_join_head head = {.rank = (uint32_t)p->rank,
					  .ranks = (uint32_t)p->ranks,
					  .own = of(p)->own,
					  .job = of(p)->job,
					  .size_bytes = size_bytes};
	int rc = gf_join_write(path, &head, data, err);

	free(path);
	return rc;
}

static bool read_path(char *path, struct gf_join_file *f)
{
	bool there = gf_join_read(path, f);

	free(path);
	return there;
}

static void drop(char *path)
{
	unlink(path);
	free(path);
}

/* --- waiting ------------------------------------------------------------ */

struct waiting {
	double until_s, nap_s;
};

static struct waiting begin_waiting(const struct gf_join_place *p)
{
	return (struct waiting){gf_clock_s() + p->timeout_s, POLL_MIN_S};
}

/* A nap; false: the time is up. NFS looks at a folder anew when it is opened,
 * and else remembers what was not in it. */
static bool go_on(const struct gf_join_place *p, struct waiting *w)
{
	DIR *folder = opendir(p->name);

	if (folder)
		closedir(folder);
	if (gf_clock_s() >= w->until_s)
		return false;
	gf_clock_sleep(w->nap_s);
	w->nap_s = w->nap_s * 2 < POLL_CAP_S ? w->nap_s * 2 : POLL_CAP_S;
	return true;
}

/* --- rank 0 ------------------------------------------------------------- */

static int write_roll(const struct gf_join_place *p, struct gf_error *err)
{
	const struct folder *f = of(p);
	size_t keys_bytes = (size_t)p->ranks * sizeof(*f->keys);
	size_t size_bytes = sizeof(f->verdict) + keys_bytes;
	char *data = gf_xmalloc(size_bytes);
	int rc;

	memcpy(data, &f->verdict, sizeof(f->verdict));
	memcpy(data + sizeof(f->verdict), f->keys, keys_bytes);
	rc = write_path(p, rank_path(p, 0), data, size_bytes, err);
	free(data);
	return rc;
}

/* Looks at a rank's file. *news: the roll lacks its key. */
static int look_at(const struct gf_join_place *p, int rank, bool *news,
		   struct gf_error *err)
{
	struct folder *f = of(p);
	struct gf_join_file file;

	if (!read_path(rank_path(p, rank), &file))
		return 0;
	free(file.data);
	if (!same(&f->keys[rank], &file.head.own)) {
		f->keys[rank] = file.head.own;
		*news = true;
	}
	f->come[rank] = same(&file.head.job, &f->job);
	if (f->come[rank] && file.head.ranks != (uint32_t)p->ranks)
		return gf_place_other_ranks(p, rank, (long)file.head.ranks,
					    err);
	return 0;
}

/* Is this rank's file as it wrote it? An earlier job that ends late may have
 * removed it: then it is written again. */
static int stay(const struct gf_join_place *p, struct gf_error *err)
{
	struct gf_join_file file;
	bool own;

	if (!read_path(rank_path(p, p->rank), &file))
		return p->rank ? write_path(p, rank_path(p, p->rank), NULL, 0,
					    err)
			       : write_roll(p, err);
	own = same(&file.head.own, &of(p)->own);
	free(file.data);
	if (own)
		return 0;
	return gf_error_set(err, -EBUSY,
			    "%s: another process has come as rank %d; want a "
			    "folder for one job",
			    p->name, p->rank);
}

/* Rank 0 tells the others why there is no job; another job's roll stays. */
static int tell(const struct gf_join_place *p, int rc,
		const struct gf_error *err)
{
	struct folder *f = of(p);

	if (!rc || p->rank || rc == -EBUSY)
		return rc;
	f->verdict.rc = rc;
	if (err)
		f->verdict.reason = *err;
	(void)write_roll(p, NULL);
	return rc;
}

/* Looks at all ranks' files once. */
static int look_at_all(const struct gf_join_place *p, bool *news, bool *all,
		       struct gf_error *err)
{
	int rank, one, rc = 0;

	*news = false;
	*all = true;
	for (rank = 1; rank < p->ranks; rank++) {
		one = look_at(p, rank, news, rc ? NULL : err);
		rc = rc ? rc : one;
		*all &= of(p)->come[rank];
	}
	return rc;
}

/* A failure waits a little: ranks that come later learn it, too. */
static void linger(const struct gf_join_place *p)
{
	struct waiting w = {gf_clock_s() + GF_PLACE_GRACE_S, POLL_MIN_S};
	bool news, all = false;

	while (!all && go_on(p, &w)) {
		(void)look_at_all(p, &news, &all, NULL);
		if (news)
			(void)write_roll(p, NULL);
	}
}

static int call_roll(const struct gf_join_place *p, struct gf_error *err)
{
	struct folder *f = of(p);
	struct waiting w = begin_waiting(p);
	bool news = true, all = false;
	int rc = 0;

	f->come[0] = true;
	while (!rc && !all) {
		if (news)
			rc = write_roll(p, err);
		rc = rc ? rc : look_at_all(p, &news, &all, err);
		rc = rc ? rc : stay(p, err);
		if (!rc && !all && !go_on(p, &w))
			rc = gf_place_missing(p, f->come, err);
	}
	if (!rc) {
		f->verdict.rc = OPENED;
		return write_roll(p, err);
	}
	tell(p, rc, err);
	if (rc == -EINVAL)
		linger(p);
	return rc;
}

/* --- the other ranks ---------------------------------------------------- */

/* Reads a roll that has this rank's key. */
static bool read_roll(const struct gf_join_place *p, struct gf_join_file *roll,
		      struct verdict *verdict)
{
	size_t keys_bytes;
	const char *own;
	bool good = read_path(rank_path(p, 0), roll);

	keys_bytes = good ? roll->head.ranks * sizeof(struct gf_join_key) : 0;
	good = good && roll->head.ranks > (uint32_t)p->rank &&
	       roll->head.size_bytes == sizeof(*verdict) + keys_bytes;
	if (good) {
		memcpy(verdict, roll->data, sizeof(*verdict));
		verdict->reason.text[sizeof(verdict->reason.text) - 1] = '\0';
		own = roll->data + sizeof(*verdict) +
		      (size_t)p->rank * sizeof(struct gf_join_key);
		good = same((const struct gf_join_key *)(const void *)own,
			    &of(p)->own);
	}
	free(roll->data);
	return good;
}

/* 0: the roll lacks this rank; 1: it has it; 2: and no rank is missing. */
static int look_at_roll(const struct gf_join_place *p, struct gf_join_key *job,
			struct gf_error *err)
{
	struct verdict verdict;
	struct gf_join_file roll;

	if (!read_roll(p, &roll, &verdict))
		return 0;
	*job = roll.head.own;
	if (verdict.rc < 0 && err)
		*err = verdict.reason;
	return verdict.rc < 0 ? verdict.rc : 1 + (verdict.rc == OPENED);
}

static int answer_roll(const struct gf_join_place *p, struct gf_error *err)
{
	struct folder *f = of(p);
	struct waiting w = begin_waiting(p);
	struct gf_join_key job;
	bool met = false;
	int rc = write_path(p, rank_path(p, p->rank), NULL, 0, err);

	memset(f->come, true, (size_t)p->ranks * sizeof(*f->come));
	f->come[0] = false;
	while (!rc) {
		rc = look_at_roll(p, &job, err);
		/* rank 0 has perhaps come later: its word is waited for */
		if (rc == 1 && !met)
			w.until_s =
				gf_clock_s() + p->timeout_s + GF_PLACE_GRACE_S;
		met |= rc == 1;
		if (rc == 1 && !same(&job, &f->job)) {
			f->job = job;
			rc = write_path(p, rank_path(p, p->rank), NULL, 0, err);
		}
		if (rc != 2 || !same(&job, &f->job))
			rc = rc < 0 ? rc : stay(p, err);
		if (!rc && !go_on(p, &w))
			rc = gf_place_missing(p, f->come, err);
	}
	return rc < 0 ? rc : 0;
}

/* --- together ----------------------------------------------------------- */

static int folder_open(struct gf_join_place *p, struct gf_error *err)
{
	struct folder *f = gf_xcalloc(1, sizeof(*f));

	p->priv = f;
	f->come = gf_xcalloc((size_t)p->ranks, sizeof(*f->come));
	f->keys = gf_xcalloc((size_t)p->ranks, sizeof(*f->keys));
	if (getrandom(&f->own, sizeof(f->own), 0) != sizeof(f->own))
		return gf_error_errno(err, -errno, "getrandom");
	if (mkdir(p->name, 0777) && errno != EEXIST)
		return gf_error_errno(err, -errno, "%s", p->name);
	if (p->rank)
		return answer_roll(p, err);
	f->job = f->own;
	return call_roll(p, err);
}

/* Takes in what a rank shows in this round, if it is there. */
static int take_in(const struct gf_join_place *p, int rank, size_t size_bytes,
		   char *recv, struct gf_error *err)
{
	struct folder *f = of(p);
	struct gf_join_file file;
	int rc = 0;

	if (!read_path(round_path(p, f->round, rank), &file))
		return 0;
	if (file.head.size_bytes != size_bytes)
		rc = gf_error_set(err, -EMSGSIZE,
				  "%s: rank %d shows %llu bytes, rank %d shows "
				  "%zu",
				  p->name, rank,
				  (unsigned long long)file.head.size_bytes,
				  p->rank, size_bytes);
	else if (size_bytes > 0)
		memcpy(recv + (size_t)rank * size_bytes, file.data, size_bytes);
	f->come[rank] = true;
	free(file.data);
	return rc;
}

static int wait_for_all(const struct gf_join_place *p, size_t size_bytes,
			char *recv, struct gf_error *err)
{
	struct folder *f = of(p);
	struct waiting w = begin_waiting(p);
	bool all = false;
	struct gf_join_key job;
	int rank, rc = 0;

	memset(f->come, 0, (size_t)p->ranks * sizeof(*f->come));
	while (!rc && !all) {
		all = true;
		for (rank = 0; rank < p->ranks && !rc; rank++) {
			if (!f->come[rank])
				rc = take_in(p, rank, size_bytes, recv, err);
			all &= f->come[rank];
		}
		if (!rc && !all && p->rank)
			rc = look_at_roll(p, &job, err);
		rc = rc < 0 ? rc : 0;
		if (!rc && !all && !go_on(p, &w))
			rc = gf_place_missing(p, f->come, err);
	}
	return rc;
}

/* Every rank has this round's files, so none needs those before them. */
static int folder_allgather(struct gf_join_place *p, const void *send,
			    size_t size_bytes, void *recv, struct gf_error *err)
{
	struct folder *f = of(p);
	int rc;

	rc = write_path(p, round_path(p, ++f->round, p->rank), send, size_bytes,
			err);
	rc = rc ? rc : wait_for_all(p, size_bytes, recv, err);
	if (!rc)
		drop(round_path(p, f->round - 1, p->rank));
	return tell(p, rc, err);
}

/* Rank 0 leaves last and removes what the job has written. After a failure it
 * stays: another rank may yet have to read why. */
static void folder_close(struct gf_join_place *p, int rc)
{
	struct folder *f = of(p);
	int rank;

	f->round++;
	rc = rc ? rc
		: write_path(p, round_path(p, f->round, p->rank), NULL, 0,
			     NULL);
	if (!rc && p->rank == 0)
		rc = wait_for_all(p, 0, NULL, NULL);
	for (rank = 0; rank < p->ranks && !rc && p->rank == 0; rank++) {
		drop(round_path(p, f->round, rank));
		drop(round_path(p, f->round - 1, rank));
		drop(rank_path(p, rank));
	}
	free(f->come);
	free(f->keys);
	free(f);
}

const struct gf_place_ops gf_place_folder = {
	.open = folder_open,
	.allgather = folder_allgather,
	.close = folder_close,
};
