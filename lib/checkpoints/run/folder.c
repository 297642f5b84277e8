/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/run/snapshot.h"

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "checkpoints/set.h"

/* Between two looks at another's lock file. */
#define LOOK_S 0.2

static void begin(struct gf_folder *f, const struct gf_folder_wish *wish)
{
	if (!f->dir)
		f->dir = gf_xstrdup(wish->dir);
	f->note = wish->note;
	f->ctx = wish->ctx;
}

static void tell(const struct gf_team *team, const struct gf_folder *f, char *text)
{
	if (f->note && team->comm->rank == 0)
		f->note(f->ctx, text);
	free(text);
}

/* --- the set to go on from ------------------------------------------------ */

/* Every rank reads its share of the set's files. */
static int check_share(const struct gf_team *team, const char *dir, const struct gf_manifest *m,
		       struct gf_error *err)
{
	int part, rc = 0;

	for (part = team->comm->rank; part < m->ranks && !rc; part += team->comm->ranks)
		rc = gf_checkpoint_check_part(dir, m, part, err);
	return rc;
}

/* Is the set of that step whole? Then it is the one. */
static int consider(struct gf_team *team, struct gf_folder *f, size_t step, struct gf_error *err)
{
	struct gf_manifest m = {0};
	int rc = gf_checkpoint_describe(f->dir, step, &m, err);

	rc = gf_team_agree(team, rc, err);
	rc = rc ?: gf_team_same_text(team, "manifest", m.sha256 ? m.sha256 : "none", err);
	rc = rc ?: gf_team_agree(team, check_share(team, f->dir, &m, err), err);
	if (!rc) {
		gf_manifest_release(&f->from);
		f->from = m;
		strcpy(f->run, "");
		if (m.run)
			strncat(f->run, m.run, GF_RUN_NAME - 1);
	} else {
		gf_manifest_release(&m);
	}
	return rc;
}

/* Newest first; *refused texts say why the first of them were. */
static int consider_all(struct gf_team *team, struct gf_folder *f, size_t *steps, size_t count,
			char **refused, struct gf_error *err)
{
	struct gf_error why = {""};
	size_t i, step;
	int rc = -ENOENT;

	for (i = 0; i < count && rc; i++) {
		step = steps ? steps[i] : 0;
		rc = gf_team_bcast(team, &step, sizeof(step), &why);
		rc = rc ?: consider(team, f, step, &why);
		if (rc && team->comm->broken) {
			*err = why;
			return rc;
		}
		if (rc)
			refused[i] = gf_xasprintf("step %zu is not whole: %s", step, why.text);
	}
	if (rc && !count)
		return gf_error_set(err, -ENOENT,
				    "%s: want a checkpoint (a folder step-N), found none", f->dir);
	if (rc)
		rc = gf_error_set(err, -EINVAL, "%s: want a whole checkpoint, found none: %s",
				  f->dir, refused[0]);
	return rc;
}

static void tell_found(const struct gf_team *team, const struct gf_folder *f, char *const *refused,
		       size_t count)
{
	for (size_t i = 0; i < count && refused[i]; i++)
		tell(team, f,
		     gf_xasprintf("%s: on from step %zu, since %s", f->dir, f->from.step,
				  refused[i]));
	if (!f->from.run)
		tell(team, f,
		     gf_xasprintf("%s/step-%zu: written by an earlier version, without a manifest: "
				  "whether its files belong together is not known",
				  f->dir, f->from.step));
}

int gf_folder_find(struct gf_team *team, const struct gf_folder_wish *wish, struct gf_folder *f,
		   struct gf_error *err)
{
	size_t *steps = NULL, count = 0, i;
	GF_FREED char **refused = NULL;
	int rc = 0;

	begin(f, wish);
	/* rank 0 chooses: a listing may differ while a file system settles */
	if (team->comm->rank == 0)
		rc = gf_checkpoint_steps(f->dir, &steps, &count, err);
	rc = gf_team_agree(team, rc, err);
	rc = rc ?: gf_team_bcast(team, &count, sizeof(count), err);
	if (rc)
		return rc;
	refused = gf_xcalloc(count + 1, sizeof(*refused));
	rc = consider_all(team, f, steps, count, refused, err);
	if (!rc) {
		tell_found(team, f, refused, count);
		f->known = true;
		f->newest = steps ? steps[0] : f->from.step;
	}
	for (i = 0; i < count; i++)
		free(refused[i]);
	free(steps);
	return rc;
}

/* --- the owner ------------------------------------------------------------ */

static int check_sets(const struct gf_folder *f, const struct gf_folder_wish *wish,
		      struct gf_error *err)
{
	size_t *steps, count, newest;

	if (gf_checkpoint_steps(f->dir, &steps, &count, NULL))
		return 0;
	newest = count ? steps[0] : 0;
	free(steps);
	if (!count || wish->resume || (f->known && newest <= f->newest))
		return 0;
	return gf_error_set(err, -EINVAL, "%s: holds checkpoints of %s%s%s", f->dir,
			    f->known ? "another run" : "an earlier run",
			    wish->other_run ? ": " : "", wish->other_run ? wish->other_run : "");
}

/* Rank 0's part, which is made of short calls: others wait for each. */
static int poll_claim(struct gf_folder *f, const struct gf_folder_wish *wish, struct gf_error *err)
{
	const struct gf_checkpoint_claim claim = {
		.job = wish->job, .note = wish->note, .ctx = wish->ctx};
	size_t *steps = NULL, count;
	int rc = 0;

	if (!f->owner && wish->resume) /* else DIR is made */
		rc = gf_checkpoint_steps(f->dir, &steps, &count, err);
	free(steps);
	if (rc)
		return rc;
	if (!f->owner)
		f->owner = gf_checkpoint_claim(f->dir, &claim);
	else
		gf_clock_sleep(LOOK_S);
	return gf_checkpoint_claim_poll(f->owner, err) ?: check_sets(f, wish, err);
}

int gf_folder_claim(struct gf_team *team, const struct gf_folder_wish *wish, struct gf_folder *f,
		    struct gf_error *err)
{
	int rc;

	begin(f, wish);
	do
		rc = gf_team_agree(team, team->comm->rank == 0 ? poll_claim(f, wish, err) : 0, err);
	while (rc == -EAGAIN);
	if (rc)
		gf_folder_leave(f);
	return rc;
}

void gf_folder_leave(struct gf_folder *f)
{
	gf_checkpoint_release(f->owner);
	f->owner = NULL;
}

void gf_folder_release(struct gf_folder *f)
{
	gf_folder_leave(f);
	gf_manifest_release(&f->from);
	free(f->dir);
	memset(f, 0, sizeof(*f));
}
