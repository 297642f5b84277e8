/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/run_report.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/heap.h"
#include "cli/human.h"
#include "json/json.h"
#include "documents/plan_brief.h"
#include "trainer/choose_ways.h"

/* Rows begin so. */
static const char row_begins[] = "{\"model\": ";

/* A log that grows beyond this is worth a word. */
#define MUCH_BYTES 100e6

/* The start of a file's last line; -1: errno has the reason. The line may be long, as the file may
 * not be a log. */
static off_t find_tail(FILE *f, off_t size_bytes)
{
	char block[1 << 14];
	off_t at = size_bytes;
	size_t n;

	while (at > 0) {
		n = at < (off_t)sizeof(block) ? (size_t)at : sizeof(block);
		at -= (off_t)n;
		errno = 0;
		if (fseeko(f, at, SEEK_SET) || fread(block, 1, n, f) != n) {
			errno = errno ? errno : EIO;
			return -1;
		}
		for (; n > 0; n--)
			if (block[n - 1] == '\n')
				return at + (off_t)n;
	}
	return 0;
}

/* A run that ended on a full disk leaves a part of a row, which the next row would go on with. A
 * file with any other unfinished last line is no log. */
static int cut_unfinished(const char *path, struct gf_error *err)
{
	char text[sizeof(row_begins)] = "";
	struct stat st;
	size_t found;
	off_t tail;
	FILE *f;
	int rc = 0;

	/* the code that appends to the file reports what is wrong with it */
	if (stat(path, &st) || !S_ISREG(st.st_mode) || !(f = fopen(path, "r+b")))
		return 0;
	tail = find_tail(f, st.st_size);
	if (tail < 0) {
		rc = gf_error_errno(err, -errno, "%s", path);
	} else if (fseeko(f, tail, SEEK_SET) == 0) {
		found = fread(text, 1, sizeof(text) - 1, f);
		if (strncmp(text, row_begins, found) != 0)
			rc = gf_error_set(err, -EINVAL,
					  "%s: want a log to append to, found a last line without "
					  "an end that is no row",
					  path);
		else if (found && ftruncate(fileno(f), tail))
			rc = gf_error_errno(err, -errno, "%s", path);
	}
	fclose(f);
	return rc;
}

/* Rows of two jobs in one file could not be told apart. A file system without locks does
 * without. */
static int lock(int fd, const char *path, struct gf_error *err)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !flock(fd, LOCK_EX | LOCK_NB) ||
	    errno != EWOULDBLOCK)
		return 0;
	return gf_error_set(err, -EBUSY,
			    "%s: want a log of this job alone, another process writes to it", path);
}

/* The file keeps its contents until it is locked. */
static int open_stream(FILE **stream, const char *path, bool append, struct gf_error *err)
{
	int fd, rc;

	*stream = gf_file_reopen(path);
	if (*stream)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : 0), 0666);
	rc = fd < 0 ? gf_error_errno(err, -errno, "%s", path) : lock(fd, path, err);
	if (!rc && append)
		rc = cut_unfinished(path, err);
	else if (!rc && ftruncate(fd, 0) && errno != EINVAL)
		rc = gf_error_errno(err, -errno, "%s", path);
	if (!rc) {
		*stream = fdopen(fd, append ? "ab" : "wb");
		if (!*stream)
			rc = gf_error_errno(err, -errno, "%s", path);
	}
	if (rc && fd >= 0)
		close(fd);
	return rc;
}

static void take_exchanges(struct gf_train_log *log, const struct gf_plan *plan)
{
	GF_RELEASED(gf_plan_release) struct gf_plan outer = {0};

	log->algorithms = gf_train_ways_once(plan);
	log->codecs = gf_plan_codecs_text(plan);
	if (gf_period_has(&plan->period, GF_PERIOD_EVERY))
		return;
	gf_period_outer(plan, &outer);
	log->outer_algorithms = gf_train_ways_once(&outer);
	log->outer_codecs = gf_plan_codecs_text(&outer);
}

int gf_train_log_open(struct gf_train_log *log, const char *path, size_t every,
		      const struct gf_train_config *config, struct gf_error *err)
{
	int rc = open_stream(&log->stream, path, config->resume, err);

	if (rc)
		return rc;
	log->every = every;
	log->row_bytes = 0;
	log->path = gf_xstrdup(path);
	log->config = config;
	log->method = gf_selection_name(&config->plan->selection);
	take_exchanges(log, config->plan);
	return 0;
}

static void put_times(struct gf_json_writer *w, const struct gf_train_times *t)
{
	gf_json_put_real(w, "load_s", t->step.load_s);
	gf_json_put_real(w, "compute_s", t->step.compute_s);
	gf_json_put_real(w, "update_s", t->step.update_s);
	gf_json_put_real(w, "exposed_s", t->step.exposed_s);
	gf_json_put_real(w, "exposed_handling_s", t->step.handling_s);
	gf_json_put_real(w, "select_s", t->select_s);
	gf_json_put_real(w, "codec_s", t->codec_s);
}

static void put_memory(struct gf_json_writer *w, const struct gf_train_memory *m)
{
	gf_json_put_size(w, "parameters_bytes", m->parameters_bytes);
	gf_json_put_size(w, "gradients_bytes", m->gradients_bytes);
	gf_json_put_size(w, "optimizer_bytes", m->optimizer_bytes);
	gf_json_put_size(w, "activations_bytes", m->activations_bytes);
	gf_json_put_size(w, "tests_bytes", m->tests_bytes);
	gf_json_put_size(w, "buffers_bytes", m->buffers_bytes);
	if (m->peak_bytes)
		gf_json_put_size(w, "peak_rss_bytes", m->peak_bytes);
	if (m->before_bytes)
		gf_json_put_size(w, "before_rss_bytes", m->before_bytes);
}

static void put_row(struct gf_json_writer *w, const struct gf_train_log *log,
		    const struct gf_train_row *row)
{
	const struct gf_train_config *k = log->config;
	const struct gf_period *period = &k->plan->period;

	gf_json_open_line(w, NULL);
	gf_json_put_string(w, "model", k->model->name);
	gf_json_put_string(w, "method", log->method);
	gf_json_put_string(w, "algorithms", log->algorithms);
	gf_json_put_string(w, "codecs", log->codecs);
	gf_json_put_int(w, "staleness", k->plan->staleness);
	if (k->plan->pipeline_warmup_steps)
		gf_json_put_size(w, "pipeline_warmup_steps", k->plan->pipeline_warmup_steps);
	if (!gf_period_has(period, GF_PERIOD_EVERY)) {
		gf_json_put_string(w, "period", gf_period_name(period));
		gf_json_put_int(w, "group_ranks", period->group_ranks);
		gf_json_put_string(w, "outer_algorithms", log->outer_algorithms);
		gf_json_put_string(w, "outer_codecs", log->outer_codecs);
	}
	if (k->choose_s > 0)
		gf_json_put_real(w, "choose_s", k->choose_s);
	gf_json_put_int(w, "ranks", k->plan->ranks);
	if (k->plan->servers)
		gf_json_put_int(w, "servers", k->plan->servers);
	gf_json_put_string(w, "device", k->place.gpu ? k->place.gpu->ops->name : "cpu");
	if (k->place.gpu)
		gf_json_put_string(w, "transport",
				   k->place.nccl ? k->place.nccl->name : k->comm->ops->name);
	gf_json_put_string(w, "precision", gf_dtype_names[k->precision]);
	gf_json_put_string(w, "optimizer", k->training.optimizer);
	gf_json_put_size(w, "batch_per_rank", k->training.batch);
	gf_json_put_size(w, "accumulate", k->training.accumulate);
	gf_json_put_size(w, "seed", k->training.seed);
	gf_json_put_size(w, "epoch", row->epoch);
	gf_json_put_size(w, "step", row->step);
	gf_json_put_string(w, "part", row->part);
	if (row->steps_behind)
		gf_json_put_size(w, "outer_step", row->step - row->steps_behind);
	gf_json_put_real(w, "learning_rate", row->rate);
	gf_json_put_real(w, "loss", row->loss);
	if (row->perplexity > 0)
		gf_json_put_real(w, "perplexity", row->perplexity);
	if (row->loss_scale > 0)
		gf_json_put_real(w, "loss_scale", row->loss_scale);
	if (row->skipped)
		gf_json_put_size(w, "skipped", row->skipped);
	gf_json_put_size(w, "correct", row->correct);
	gf_json_put_size(w, "samples", row->samples);
	gf_json_put_real(w, "accuracy", (double)row->correct / (double)row->samples);
	if (strcmp(row->part, "test") != 0) {
		gf_json_put_size(w, "sent_bytes", row->sent_bytes);
		gf_json_put_size(w, "dense_bytes", row->dense_bytes);
	}
	gf_json_put_real(w, "time_s", row->seconds);
	if (strcmp(row->part, "train") == 0) {
		put_times(w, &row->times);
		put_memory(w, &row->memory);
	}
	gf_json_put_real(w, "samples_per_s", row->samples_per_s);
	gf_json_close_object(w);
}

int gf_train_log_row(struct gf_train_log *log, const struct gf_train_row *row, struct gf_error *err)
{
	struct gf_json_writer w = {0};
	bool of_step = strcmp(row->part, "batch") == 0;
	int rc = 0;

	if (of_step && (!log->every || row->step % log->every))
		return 0;
	put_row(&w, log, row);
	if (of_step)
		log->row_bytes = w.text.length;
	errno = 0;
	if (fwrite(w.text.data, 1, w.text.length, log->stream) != w.text.length ||
	    fflush(log->stream))
		rc = gf_error_errno(err, errno ? -errno : -EIO, "%s", log->path);
	gf_text_release(&w.text);
	return rc;
}

char *gf_train_log_growth(struct gf_train_log *log, size_t steps)
{
	double rows = log->every ? (double)steps / (double)log->every : 0;
	double bytes = rows * (double)log->row_bytes;

	if (log->told || bytes < MUCH_BYTES)
		return NULL;
	log->told = true;
	return gf_xasprintf("%s: will grow to about %s, a row for %zu step%s of %zu; --log-every N "
			    "writes fewer",
			    log->path, gf_human_size(bytes).text, log->every,
			    log->every == 1 ? "" : "s", steps);
}

int gf_train_log_close(struct gf_train_log *log, struct gf_error *err)
{
	int rc = 0;

	if (!log->stream)
		return 0;
	errno = 0;
	if (fclose(log->stream))
		rc = gf_error_errno(err, errno ? -errno : -EIO, "%s", log->path);
	free(log->path);
	free(log->algorithms);
	free(log->codecs);
	free(log->outer_algorithms);
	free(log->outer_codecs);
	*log = (struct gf_train_log){0};
	return rc;
}
