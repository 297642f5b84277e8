/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/importers.h"

#include <dirent.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/gunzip.h"
#include "base/heap.h"
#include "base/registry.h"
#include "cost/layer_times.h"
#include "documents/foreign.h"
#include "imports/collectives.h"
#include "json/json.h"

/* "dir/resnet50.csv" -> "resnet50" */
static char *name_of_file(const char *file)
{
	const char *slash = strrchr(file, '/');
	char *name = gf_xstrdup(slash ? slash + 1 : file);
	char *dot = strchr(name, '.');

	if (dot && dot != name)
		*dot = '\0';
	return name;
}

struct gf_model_profile *gf_import_model(const struct gf_import *in, const char *device,
					 struct gf_text *remarks)
{
	struct gf_model_profile *m = gf_xcalloc(1, sizeof(*m));

	m->name = in->name ? gf_xstrdup(in->name) : name_of_file(in->file);
	m->device = gf_xstrdup_or_null(device);
	m->batch_per_rank = in->batch;
	m->overlap_slowdown = 1;
	m->forward_s = isnan(in->forward_s) ? 0 : in->forward_s;
	m->backward_s = isnan(in->backward_s) ? 0 : in->backward_s;
	if (isnan(in->forward_s))
		gf_text_addf(
			remarks,
			"%s: the forward time is not known and taken as 0 (--passes forward)\n",
			in->file);
	return m;
}

int gf_import_finish_model(const struct gf_import *in, struct gf_model_profile *m,
			   struct gf_error *err)
{
	const size_t most = 1 << 18; /* no model has a tenth of it */
	double ready_s = m->ntensors > 0 ? m->tensors[m->ntensors - 1].ready_s : 0;

	if (m->ntensors > most)
		return gf_error_set(err, -EINVAL, "%s: want at most %zu tensors, got %zu", in->file,
				    most, m->ntensors);
	if (in->backward_s < ready_s)
		return gf_error_set(
			err, -EINVAL,
			"--passes: backward: want at least %g s, when the last gradient of "
			"%s is ready, got %g s",
			ready_s, in->file, in->backward_s);
	m->backward_s = fmax(m->backward_s, ready_s);
	return 0;
}

int gf_import_want_ranks(const struct gf_import *in, struct gf_error *err)
{
	return gf_error_set(err, -EINVAL,
			    "%s: %s: it does not say how many ranks there were: want --ranks",
			    in->file, in->imported->kind);
}

bool gf_import_profiles(const void *importer)
{
	return ((const struct gf_importer *)importer)->read != NULL;
}

static const struct gf_importer *recognise(const char *text)
{
	const struct gf_importer *const *all = gf_importers, *i;

	while ((i = *all++))
		if ((i->recognise && i->recognise(text)) ||
		    (i->table && gf_columns_recognise(i->table, text)))
			return i;
	return NULL;
}

const char *gf_import_reads(const char *text)
{
	const struct gf_importer *i = recognise(text);

	return i ? i->description : NULL;
}

/* No reader recognises the text. */
static int refuse(const struct gf_import *in, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text known = {0};
	int rc = gf_foreign_refuse_rest(in->file, in->text, in->size, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; gf_importers[i]; i++)
		gf_text_addf(&known, "%s%s", i ? ", " : "", gf_importers[i]->name);
	gf_error_set(err, -EINVAL,
		     "%s: want the format of one of %s (man gf-profile), found none of them",
		     in->file, known.data);
	return -EINVAL;
}

int gf_import_find(const struct gf_import *in, const char *format,
		   const struct gf_importer **importer, struct gf_error *err)
{
	const struct gf_registry all = {gf_importers, 0, gf_import_profiles};
	const bool zero = memchr(in->text, '\0', in->size);
	int rc = 0;

	if (format && strcmp(format, "auto") != 0) {
		*importer = gf_named_find(gf_importers, 0, format);
		if (!*importer)
			return gf_registry_refuse(&all, NULL, NULL, format, err);
		if (!zero)
			return 0;
		rc = gf_foreign_refuse(in->file, in->text, in->size, err);
	} else {
		rc = gf_foreign_refuse(in->file, in->text, in->size, err);
		*importer = rc ? NULL : recognise(in->text);
	}
	return rc || (*importer && !zero) ? rc : refuse(in, err);
}

int gf_import_profile(const struct gf_import *in, const char *format, struct gf_profile *out,
		      struct gf_text *remarks, struct gf_error *err)
{
	const struct gf_importer *importer;
	GF_RELEASED(gf_imported_release) struct gf_imported own = {0};
	struct gf_import read = *in;
	struct gf_profile p = {0};
	int rc = gf_import_find(in, format, &importer, err);

	if (rc < 0)
		return rc;
	if (in->folder && !importer->folders)
		return gf_error_set(err, -EINVAL, "%s: want one file of %s, got a folder", in->file,
				    importer->name);
	if (!importer->read)
		return gf_error_set(
			err, -EINVAL,
			"%s: %s goes with its plan (gf-report --plan, gf-plan --refine)", in->file,
			importer->description);
	if (!in->imported)
		read.imported = &own;
	read.imported->kind = importer->name;
	read.importer = importer;
	rc = importer->read(&read, &p, remarks, err);
	if (rc == 0) {
		p.producer = gf_xstrdup("gf-profile " GF_VERSION);
		if (p.model && !read.imported->found.length)
			gf_imported_find(read.imported, "%zu tensors", p.model->ntensors);
		gf_imported_note(read.imported, &p.measured);
		if (in->variant && !p.network)
			rc = gf_error_set(err, -EINVAL,
					  "--imported: variant: want all-reduces, got %s",
					  importer->name);
		else
			rc = gf_profile_check(&p, err);
		if (rc < 0)
			gf_error_prefix(err, "%s", in->file);
	}
	if (rc < 0)
		gf_profile_release(&p);
	else
		*out = p;
	return rc;
}

/* --- files and folders ------------------------------------------------------
 */

static bool is_folder(const char *path)
{
	struct stat s;

	return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static int is_seen(const struct dirent *d)
{
	return d->d_name[0] != '.' && d->d_type != DT_DIR;
}

/* In every locale alike. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int gf_import_each(const char *path,
		   int (*take)(void *ctx, const char *file, int number, int count,
			       struct gf_error *err),
		   void *ctx, struct gf_error *err)
{
	GF_FREED struct dirent **files = NULL;
	size_t size;
	int count, i, fd, rc = 0;

	if (!is_folder(path))
		return take(ctx, path, 0, 1, err);
	count = scandir(path, &files, is_seen, by_name);
	if (count < 0)
		return gf_error_errno(err, -errno, "%s", path);
	if (count == 0)
		rc = gf_error_set(err, -EINVAL, "%s: want a folder with files, found none", path);
	for (i = 0; i < count; i++) {
		GF_FREED char *file = gf_xasprintf("%s/%s", path, files[i]->d_name);

		/* nothing may ever be written to a pipe */
		rc = rc ?: gf_file_open_regular(file, &fd, &size, err);
		if (rc == 0) {
			close(fd);
			rc = take(ctx, file, i, count, err);
		}
		free(files[i]);
	}
	return rc;
}

/* --- a trace of each rank ---------------------------------------------------
 */

static double whole_s(const struct gf_model_profile *m)
{
	return m->forward_s + m->backward_s + m->update_s;
}

/* The step of the slower rank, and of each tensor the later time. */
static int join(struct gf_model_profile *all, const struct gf_model_profile *m, const char *file,
		struct gf_error *err)
{
	size_t t;

	for (t = 0; t < m->ntensors && m->ntensors == all->ntensors; t++)
		if (m->tensors[t].count_elems != all->tensors[t].count_elems ||
		    m->tensors[t].dtype != all->tensors[t].dtype)
			break;
	if (t < all->ntensors || t < m->ntensors)
		return gf_error_set(err, -EINVAL,
				    "%s: want the gradients of the other ranks (%zu, %zu bytes), "
				    "got others (%zu, %zu bytes)",
				    file, all->ntensors, gf_model_profile_bytes(all), m->ntensors,
				    gf_model_profile_bytes(m));
	if (whole_s(m) > whole_s(all)) {
		all->forward_s = m->forward_s;
		all->backward_s = m->backward_s;
		all->update_s = m->update_s;
	}
	for (t = 0; t < m->ntensors; t++)
		all->tensors[t].ready_s = fmax(all->tensors[t].ready_s, m->tensors[t].ready_s);
	return 0;
}

/* "job/traces/" -> "traces" */
static char *name_of_folder(const char *path)
{
	size_t length = strlen(path), from;

	while (length > 1 && path[length - 1] == '/')
		length--;
	for (from = length; from > 0 && path[from - 1] != '/'; from--)
		;
	return gf_xasprintf("%.*s", (int)(length - from), path + from);
}

/* What is known of the ranks so far. */
struct ranks {
	const struct gf_import *in;
	const char *params_file, *format, *name;
	struct gf_profile all;
	struct gf_collectives collectives;
	struct gf_text *remarks;
	double least_s, most_s; /* a step of the fastest, of the slowest */
};

static int take_rank(void *ctx, const char *file, int number, int count, struct gf_error *err)
{
	struct ranks *r = ctx;
	struct gf_import one = *r->in;
	struct gf_profile p = {0};
	int rc;

	one.file = file;
	one.rank = number;
	one.imported = r->collectives.imported;
	if (number == 0)
		gf_imported_find(one.imported, "traces of %d rank%s", count, count == 1 ? "" : "s");
	one.collectives = &r->collectives;
	one.name = one.name ? one.name : r->name;
	rc = gf_import_file(&one, r->params_file, r->format, &p, r->remarks, err);
	if (rc == 0 && !p.model)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a rank's trace, got measurements of a network", file);
	if (rc == 0) {
		r->least_s = fmin(r->least_s, whole_s(p.model));
		r->most_s = fmax(r->most_s, whole_s(p.model));
	}
	if (rc == 0 && r->all.model) {
		rc = join(r->all.model, p.model, file, err);
	} else if (rc == 0) {
		r->all = p;
		return 0;
	}
	gf_profile_release(&p);
	return rc;
}

/* The network half, if the traces hold enough for one. */
static int add_network(struct ranks *r, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_collectives *c = &r->collectives;
	GF_RELEASED(gf_text_release) struct gf_text waits = {0};
	size_t present = gf_collectives_match(c, r->in->file, r->in->ranks, &waits);
	const char *why =
		present < 2 ? "all-reduces of one rank, whose times hold the waits for the others"
		: !c->count || c->all[c->count - 1].size_bytes / 2 < c->all[0].size_bytes
			? "all-reduces of one size, or of sizes within a factor "
			  "of two, which make no line"
			: NULL;

	if (why) {
		gf_imported_leave_many(c->imported, why, c->count);
		return 0;
	}
	gf_text_addf(remarks, "%s", waits.data ? waits.data : "");
	return gf_collectives_finish(c, r->in, &r->all, remarks, err);
}

/* What all ranks together are. */
static int finish(struct ranks *r, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_model_profile *m = r->all.model;
	int rc = add_network(r, remarks, err);

	if (rc)
		return rc;
	m->backward_s = fmax(m->backward_s, m->tensors[m->ntensors - 1].ready_s);
	gf_text_addf(remarks,
		     "%s: the ranks' steps take %.3g to %.3g ms: the slowest counts, and of each "
		     "gradient the latest time\n",
		     r->in->file, r->least_s * 1e3, r->most_s * 1e3);
	gf_imported_note(r->collectives.imported, &r->all.measured);
	return gf_profile_check(&r->all, err);
}

/* gf_import_file of each file in a folder, one per rank of a job: the step of the slowest rank, and
 * of each gradient the latest time. A remark says how far ranks differ. All-reduces of two sizes
 * that several ranks recorded are the network half. */
static int read_ranks(const struct gf_import *in, const char *params_file, const char *format,
		      struct gf_profile *out, struct gf_text *remarks, struct gf_error *err)
{
	GF_FREED char *name = name_of_folder(in->file);
	GF_RELEASED(gf_imported_release) struct gf_imported own = {0};
	struct ranks r = {.in = in,
			  .params_file = params_file,
			  .format = format,
			  .name = name,
			  .collectives.imported = in->imported ? in->imported : &own,
			  .remarks = remarks,
			  .least_s = INFINITY};
	int rc = gf_import_each(in->file, take_rank, &r, err);

	rc = rc ?: finish(&r, remarks, err);
	if (rc == 0)
		*out = r.all;
	else
		gf_profile_release(&r.all);
	gf_collectives_release(&r.collectives);
	return rc;
}

/* --- whole files ------------------------------------------------------------
 */

/* Appends a file to the text of its folder. */
static int add_file(void *ctx, const char *file, int number, int count, struct gf_error *err)
{
	struct gf_text *all = ctx;
	GF_FREED char *text = NULL;
	size_t size;
	int rc = gf_gunzip_read(file, &text, &size, err);

	(void)number;
	(void)count;
	if (rc == 0 && all->length + size > GF_FILE_MAX_BYTES)
		rc = gf_error_set(
			err, -EFBIG,
			"%s: want at most %zu bytes in it and the files before it, got more", file,
			GF_FILE_MAX_BYTES);
	if (rc == 0) {
		gf_text_add(all, text, size);
		gf_text_add(all, "\n", 1);
	}
	return rc;
}

static int add_first(void *ctx, const char *file, int number, int count, struct gf_error *err)
{
	return number ? 0 : add_file(ctx, file, number, count, err);
}

/* A folder's files of ranks may be longer together than what fits into memory. */
static bool is_of_ranks(const struct gf_import *in, const char *format)
{
	struct gf_import first = *in;
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	const struct gf_importer *importer = NULL;
	struct gf_error unread;
	bool found = gf_import_each(in->file, add_first, &text, &unread) == 0;

	first.size = text.length;
	first.text = text.data ? text.data : "";
	found = found && gf_import_find(&first, format, &importer, &unread) == 0;
	return found && importer->ranks;
}

int gf_import_file(const struct gf_import *in, const char *params_file, const char *format,
		   struct gf_profile *out, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_import read = *in;
	struct gf_text all = {0};
	GF_FREED char *text = NULL, *params = NULL;
	size_t size;
	int rc;

	read.folder = is_folder(in->file);
	if (read.folder && is_of_ranks(in, format))
		return read_ranks(in, params_file, format, out, remarks, err);
	rc = gf_import_each(in->file, add_file, &all, err);
	read.size = all.length;
	read.text = text = gf_text_take(&all);
	if (rc == 0 && params_file)
		rc = gf_gunzip_read(params_file, &params, &size, err);
	read.parameters = params;
	return rc ?: gf_import_profile(&read, format, out, remarks, err);
}

int gf_import_estimate(const struct gf_import *in, const struct gf_model *model,
		       const struct gf_rates *rates, const struct gf_passes *passes,
		       struct gf_profile *out, struct gf_text *remarks, struct gf_error *err)
{
	bool timed = !isnan(in->forward_s) || rates->gpu || rates->flops_per_s > 0;
	struct gf_estimate estimate = {
		.batch = in->batch ? in->batch : GF_BATCH_DEFAULT,
		.forward_s = isnan(in->forward_s) ? 0 : in->forward_s,
		.backward_s = isnan(in->backward_s) ? 0 : in->backward_s,
		.shares = (enum gf_shares)in->shares,
	};
	GF_RELEASED(gf_text_release) struct gf_text rate = {0}, open = {0};
	int rc = 0;

	if (!model)
		return gf_error_set(err, -EINVAL, "--estimate: want a model (--model)");
	if (passes && (timed || in->batch))
		return gf_error_set(err, -EINVAL,
				    "--estimate: want no time, rate or batch beside a profile with "
				    "passes, got some");
	if (!passes && !timed)
		return gf_error_set(err, -EINVAL,
				    "--estimate: want --gpu, --flops, --passes or a profile with "
				    "passes, found none");
	if (passes) {
		rc = gf_passes_spread(passes, model, estimate.shares, &out->model, err);
		if (!rc)
			out->producer = gf_xstrdup("gf-profile " GF_VERSION);
		return rc;
	}
	if (isnan(in->forward_s))
		rc = gf_rates_take(rates, NULL, &estimate, &rate, &open, err);
	if (!in->batch)
		gf_text_addf(remarks, "by default: %d samples per rank (--batch)\n",
			     GF_BATCH_DEFAULT);
	if (rc == 0 && rates->gpu)
		gf_estimate_note(model, &estimate, rate.data, remarks);
	if (rc < 0)
		return rc;
	out->producer = gf_xstrdup("gf-profile " GF_VERSION);
	return gf_model_estimate(model, &estimate, &out->model, err);
}

/* An object over several lines is no longer. */
#define RECORD_MOST ((size_t)1 << 16)

/* Text before or after the object may be a label. */
static int read_object(const struct gf_import *in, const char *open, size_t *length,
		       struct gf_json **root)
{
	size_t left = in->size - (size_t)(open - in->text);
	const char *end = memchr(open, '\n', left);
	size_t line = end ? (size_t)(end - open) : left, used = 0;
	int rc = gf_json_parse_next(open, line, in->file, &used, root, NULL);

	if (rc < 0 && strspn(open + 1, " \t\r") + 1 >= line) {
		used = 0;
		rc = gf_json_parse_next(open, left < RECORD_MOST ? left : RECORD_MOST, in->file,
					&used, root, NULL);
	}
	*length = rc < 0 ? line : used;
	return rc;
}

int gf_import_records(const struct gf_import *in, gf_import_record *take, void *ctx,
		      struct gf_error *err)
{
	const char *p = in->text, *end = in->text + in->size, *open;
	size_t number = 1, length;
	int rc = 0;

	while (p < end && rc == 0) {
		const char *next = memchr(p, '\n', (size_t)(end - p));
		struct gf_json_at at = {0};
		struct gf_json *root = NULL;

		next = next ? next : end;
		open = memchr(p, '{', (size_t)(next - p));
		if (!open) {
			if (strspn(p, " \t\r,[]") < (size_t)(next - p))
				gf_imported_leave(in->imported, "lines that are no records",
						  number);
			length = 0;
			open = next;
		} else if (read_object(in, open, &length, &root) < 0) {
			gf_imported_leave(in->imported, "broken records", number);
		} else {
			GF_FREED char *place = gf_xasprintf("%s:%zu", in->file, number);

			rc = gf_json_root(root, place, &at, err);
			rc = rc ?: take(ctx, &at, number, err);
			gf_json_leave(&at);
			gf_json_free(root);
		}
		for (next = open + length; p < next; p++)
			number += *p == '\n';
		/* another may follow in its line */
		p += strspn(p, " \t\r,]");
		if (p < end && *p == '\n') {
			number++;
			p++;
		} else if (p < end && *p != '{') {
			gf_imported_leave(in->imported, "lines that are no records", number);
			p += strcspn(p, "\n{");
		}
	}
	return rc;
}
