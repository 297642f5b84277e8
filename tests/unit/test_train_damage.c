/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs that go on from damaged folders: from the newest whole set, which is told, and to the same
 * bits as a run that was never stopped. */
#include <math.h>

#include "base/rng.h"
#include "folder.h"
#include "selections.h"
#include "checkpoints/run/snapshot.h"
#include "train_run.h"

#define RANKS 3
#define STEPS 12

static char said[2048];

static const struct {
	const char *name;
	int staleness;
} selections[] = {
	{"plain", 1},
	{"pieces: small", 1},
	{"gathered: small", 2},
	{"shapes: small", 1},
};

static void note(void *ctx, const char *text)
{
	(void)ctx;
	strncat(said, text, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

static void shell(const char *fmt, const char *a, const char *b)
{
	char *command = gf_xasprintf(fmt, a, b);

	EXPECT(system(command) == 0, "%s", command);
	free(command);
}

static struct train_run run_of(size_t i, const char *dir, size_t steps)
{
	struct train_run run = train_defaults(MLP, RANKS, 6);

	run.selection = test_selection(selections[i].name);
	run.staleness = selections[i].staleness;
	run.config.checkpoint = dir;
	run.config.checkpoint_every = 4;
	run.config.steps = steps;
	run.config.watch.note = note;
	return run;
}

/* A file as an earlier version wrote it: without the names of run and rank. */
static void make_old(const char *path)
{
	static const char *const gone[] = {"\"run\":", "\"rank\":"};
	char *data = NULL, *at;
	size_t size = 0, i;

	EXPECT(!gf_file_read(path, &data, &size, NULL), "%s", path);
	for (i = 0; i < GF_ARRAY_LENGTH(gone); i++) {
		at = memmem(data, size, gone[i], strlen(gone[i]));
		EXPECT(at != NULL, "%s: no %s", path, gone[i]);
		if (at) /* another key of the same length */
			at[1] = 'x';
	}
	EXPECT(!gf_file_write(path, data, size, NULL), "%s", path);
	free(data);
}

/* The harm done to DIR, which holds steps 4 and 8. */
enum harm { SWAP, FOREIGN, STEP, FLIP, CUT, APPEND, MISSING, NONE, OLD, ALL };

static void swap_files(const char *dir)
{
	shell("cd %s/step-8 && mv rank-1.safetensors x && mv rank-2.safetensors rank-1.safetensors "
	      "&& mv x %s",
	      dir, "rank-2.safetensors");
}

static void flip(const char *dir, struct gf_rng *rng)
{
	char *path = gf_checkpoint_part(dir, 8, (int)gf_rng_below(rng, RANKS), false);
	char *data = NULL;
	size_t size = 0;

	gf_file_read(path, &data, &size, NULL);
	data[gf_rng_below(rng, size)] ^= 4;
	gf_file_write(path, data, size, NULL);
	free(data);
	free(path);
}

static void harm(enum harm how, const char *dir, const char *other, struct gf_rng *rng)
{
	const char *file = "rank-1.safetensors";
	int r;

	switch (how) {
	case SWAP:
		swap_files(dir);
		break;
	case FOREIGN:
		shell("cp %s/step-8/rank-1.safetensors %s/step-8", other, dir);
		break;
	case STEP:
		shell("cp %s/step-4/rank-1.safetensors %s/step-8", dir, dir);
		break;
	case FLIP:
		flip(dir, rng);
		break;
	case CUT:
		shell("truncate -s -1 %s/step-8/%s", dir, file);
		break;
	case APPEND:
		shell("echo >> %s/step-8/%s", dir, file);
		break;
	case MISSING:
		shell("rm %s/step-8/%s", dir, GF_MANIFEST_NAME);
		break;
	case OLD:
		shell("rm %s/step-8/%s", dir, GF_MANIFEST_NAME);
		for (r = 0; r < RANKS; r++) {
			char *path = gf_checkpoint_part(dir, 8, r, false);

			make_old(path);
			free(path);
		}
		break;
	case ALL:
		shell("rm %s/step-*/%s", dir, file);
		break;
	case NONE:
		break;
	}
}

static const struct {
	const char *label;
	enum harm how;
	const char *words; /* said, or the reason; NULL: nothing is */
	int rc;
} harms[] = {
	{"unharmed", NONE, NULL, 0},
	{"swapped", SWAP,
	 "step-8/rank-1.safetensors: want the part of rank 1, found that of rank 2", 0},
	{"of another run", FOREIGN, "step-8/rank-1.safetensors: want the part of run ", 0},
	{"of another step", STEP,
	 "step-8/rank-1.safetensors: want the part of step 8, found that of step 4", 0},
	{"flipped", FLIP, "step-8/rank-", 0},
	{"flipped again", FLIP, "step-8/rank-", 0},
	{"cut", CUT, "step-8/rank-1.safetensors: ", 0},
	{"appended", APPEND, "step-8/rank-1.safetensors: ", 0},
	{"no manifest", MISSING, "step-8/manifest.json: want the set's", 0},
	{"old", OLD, "step-8: written by an earlier version", 0},
	{"all", ALL, "want a whole checkpoint, found none", -EINVAL},
};

static void try_all(size_t i)
{
	char *through = gf_xasprintf("%s/through", folder);
	char *stopped = gf_xasprintf("%s/stopped", folder);
	char *other = gf_xasprintf("%s/other", folder);
	char *dir = gf_xasprintf("%s/dir", folder);
	struct train_run run = run_of(i, through, STEPS);
	struct gf_rng rng;
	size_t k;
	int r;

	gf_rng_init(&rng, 5, i);
	train(&run);
	EXPECT(run.rc == 0, "%s: %s", selections[i].name, run.err.text);
	run = run_of(i, stopped, 8);
	train(&run);
	run = run_of(i, other, 8);
	run.config.training.seed = 6;
	train(&run);
	for (k = 0; k < GF_ARRAY_LENGTH(harms); k++) {
		char *label = gf_xasprintf("%s, %s", selections[i].name, harms[k].label);

		shell("cp -r %s %s", stopped, dir);
		harm(harms[k].how, dir, other, &rng);
		run = run_of(i, dir, STEPS);
		run.config.resume = true;
		said[0] = '\0';
		train(&run);
		EXPECT(run.rc == harms[k].rc, "%s: %d %s", label, run.rc, run.err.text);
		EXPECT(!harms[k].words
			       ? !said[0]
			       : strstr(run.rc ? run.err.text : said, harms[k].words) != NULL,
		       "%s: \"%s\"", label, run.rc ? run.err.text : said);
		for (r = 0; r < RANKS && !run.rc; r++)
			same_file(through, dir, STEPS, r, label);
		shell("rm -r %s%s", dir, "");
		free(label);
	}
	shell("rm -r %s %s", through, stopped);
	shell("rm -r %s%s", other, "");
	free(through);
	free(stopped);
	free(other);
	free(dir);
}

/* Two jobs in one folder: the second is refused, the first goes on. */
static void test_two_jobs(void)
{
	char *dir = gf_xasprintf("%s/two", folder);
	const struct gf_folder_wish wish = {.dir = dir, .job = "job 47"};
	struct gf_comm *comm = NULL;
	struct gf_folder held = {0};
	struct gf_team team;
	struct train_run run = run_of(0, dir, 4);
	struct gf_error err = {""};

	EXPECT(!gf_comm_local_new(1, &comm, &err), "%s", err.text);
	team = (struct gf_team){.comm = comm};
	EXPECT(!gf_folder_claim(&team, &wish, &held, &err), "%s", err.text);
	train(&run);
	EXPECT(run.rc == -EBUSY && strstr(run.err.text, "is in use by job 47 (process "), "%d: %s",
	       run.rc, run.err.text);
	gf_folder_release(&held);
	train(&run);
	EXPECT(run.rc == 0, "%s", run.err.text);
	/* sets that came after this run's last one are another's */
	gf_comm_close(comm);
	shell("rm -r %s%s", dir, "");
	free(dir);
}

/* A set that another job replaces between the look at it and its reading. */
static void test_replaced(void)
{
	char *dir = gf_xasprintf("%s/replaced", folder);
	const struct gf_folder_wish wish = {.dir = dir, .resume = true};
	const struct gf_selection plain = {0};
	const struct gf_snapshot_words words = {.samples = "samples"};
	const struct gf_run_identity id = {.words = &words,
					   .model = "m",
					   .method = "plain",
					   .optimizer = "sgd",
					   .selection = &plain,
					   .codecs = "f32",
					   .period = "every",
					   .loss_scale = "none",
					   .training = "{}",
					   .ways = "[]"};
	uint64_t word = 1;
	struct gf_folder writer = {0}, reader = {0};
	struct gf_snapshot_source from = {0};
	struct gf_state state = {0};
	struct gf_comm *comm = NULL;
	struct gf_error err = {""};
	struct gf_team team;

	mkdir(dir, 0777);
	EXPECT(!gf_comm_local_new(1, &comm, &err), "%s", err.text);
	team = (struct gf_team){.comm = comm};
	gf_state_add_words(&state, GF_STATE_SHARED, "w", "U64", &word, 1);
	EXPECT(!gf_folder_claim(&team, &wish, &writer, &err) &&
		       !gf_snapshot_write(&team, &writer, 5, &id, &state, &err),
	       "%s", err.text);
	EXPECT(!gf_folder_find(&team, &wish, &reader, &err) &&
		       !gf_snapshot_read(&team, &reader, &from, &id, &state, &err),
	       "%s", err.text);
	word = 2;
	EXPECT(!gf_snapshot_write(&team, &writer, 5, &id, &state, &err), "%s", err.text);
	EXPECT(gf_snapshot_read(&team, &reader, &from, &id, &state, &err) == -EINVAL &&
		       strstr(err.text, "/step-5: "),
	       "%s", err.text);
	gf_folder_release(&writer);
	gf_folder_release(&reader);
	gf_state_release(&state);
	gf_comm_close(comm);
	shell("rm -r %s%s", dir, "");
	free(dir);
}

int main(void)
{
	size_t i;

	watchdog(280);
	make_folder("test_train_damage");
	for (i = 0; i < GF_ARRAY_LENGTH(selections); i++)
		try_all(i);
	test_two_jobs();
	test_replaced();
	return TEST_END();
}
