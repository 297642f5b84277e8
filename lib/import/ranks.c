/* SPDX-License-Identifier: BSD-3-Clause */
#include "import/importers.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "import/collectives.h"

int gf_import_is_folder(const char *path)
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
		   int (*take)(void *ctx, const char *file, int number,
			       int count, struct gf_error *err),
		   void *ctx, struct gf_error *err)
{
	struct dirent **files = NULL;
	size_t size;
	int count, i, fd, rc = 0;

	if (!gf_import_is_folder(path))
		return take(ctx, path, 0, 1, err);
	count = scandir(path, &files, is_seen, by_name);
	if (count < 0)
		return gf_error_errno(err, -errno, "%s", path);
	if (count == 0)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a folder with files, found none",
				  path);
	for (i = 0; i < count; i++) {
		char *file = gf_xasprintf("%s/%s", path, files[i]->d_name);

		/* nothing may ever be written to a pipe */
		if (rc == 0)
			rc = gf_file_open_regular(file, &fd, &size, err);
		if (rc == 0) {
			close(fd);
			rc = take(ctx, file, i, count, err);
		}
		free(file);
		free(files[i]);
	}
	free(files);
	return rc;
}

static double whole_s(const struct gf_model_profile *m)
{
	return m->forward_s + m->backward_s + m->update_s;
}

/* The step of the slower rank, and of each tensor the later time. */
static int join(struct gf_model_profile *all, const struct gf_model_profile *m,
		const char *file, struct gf_error *err)
{
	size_t t;

	for (t = 0; t < m->ntensors && m->ntensors == all->ntensors; t++)
		if (m->tensors[t].count_elems != all->tensors[t].count_elems ||
		    m->tensors[t].dtype != all->tensors[t].dtype)
			break;
	if (t < all->ntensors || t < m->ntensors)
		return gf_error_set(err, -EINVAL,
				    "%s: want the gradients of the other ranks "
				    "(%zu, %zu bytes), got others (%zu, %zu "
				    "bytes)",
				    file, all->ntensors,
				    gf_model_profile_bytes(all), m->ntensors,
				    gf_model_profile_bytes(m));
	if (whole_s(m) > whole_s(all)) {
		all->forward_s = m->forward_s;
		all->backward_s = m->backward_s;
		all->update_s = m->update_s;
	}
	for (t = 0; t < m->ntensors; t++)
		all->tensors[t].ready_s =
			fmax(all->tensors[t].ready_s, m->tensors[t].ready_s);
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

static int take(void *ctx, const char *file, int number, int count,
		struct gf_error *err)
{
	struct ranks *r = ctx;
	struct gf_import one = *r->in;
	struct gf_profile p = {0};
	int rc;

	one.file = file;
	one.rank = number;
	one.imported = r->collectives.imported;
	if (number == 0)
		gf_imported_find(one.imported, "traces of %d rank%s", count,
				 count == 1 ? "" : "s");
	one.collectives = &r->collectives;
	one.name = one.name ? one.name : r->name;
	rc = gf_import_file(&one, r->params_file, r->format, &p, r->remarks,
			    err);
	if (rc == 0 && !p.model)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a rank's trace, got measurements "
				  "of a network",
				  file);
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
static int add_network(struct ranks *r, struct gf_text *remarks,
		       struct gf_error *err)
{
	struct gf_collectives *c = &r->collectives;
	struct gf_text waits = {0};
	size_t present =
		gf_collectives_match(c, r->in->file, r->in->ranks, &waits);
	const char *why =
		present < 2 ? "all-reduces of one rank, whose times hold the "
			      "waits for the others"
		: !gf_collectives_line(c)
			? "all-reduces of one size, or of sizes within a "
			  "factor of two, which make no line"
			: NULL;

	if (!why)
		gf_text_addf(remarks, "%s", waits.data ? waits.data : "");
	gf_text_release(&waits);
	if (why) {
		gf_imported_leave_many(c->imported, why, c->count);
		return 0;
	}
	return gf_collectives_finish(c, r->in, &r->all, remarks, err);
}

/* What all ranks together are. */
static int finish(struct ranks *r, struct gf_text *remarks,
		  struct gf_error *err)
{
	struct gf_model_profile *m = r->all.model;
	int rc = add_network(r, remarks, err);

	if (rc)
		return rc;
	m->backward_s =
		fmax(m->backward_s, m->tensors[m->ntensors - 1].ready_s);
	gf_text_addf(remarks,
		     "%s: the ranks' steps take %.3g to %.3g ms: the slowest "
		     "counts, and of each gradient the latest time\n",
		     r->in->file, r->least_s * 1e3, r->most_s * 1e3);
	gf_imported_note(r->collectives.imported, &r->all.measured);
	return gf_profile_check(&r->all, err);
}

int gf_import_ranks(const struct gf_import *in, const char *params_file,
		    const char *format, struct gf_profile *out,
		    struct gf_text *remarks, struct gf_error *err)
{
	char *name = name_of_folder(in->file);
	struct gf_imported own = {0};
	struct ranks r = {.in = in,
			  .params_file = params_file,
			  .format = format,
			  .name = name,
			  .collectives.imported =
				  in->imported ? in->imported : &own,
			  .remarks = remarks,
			  .least_s = INFINITY};
	int rc = gf_import_each(in->file, take, &r, err);

	if (rc == 0)
		rc = finish(&r, remarks, err);
	if (rc == 0)
		*out = r.all;
	else
		gf_profile_release(&r.all);
	gf_collectives_release(&r.collectives);
	gf_imported_release(&own);
	free(name);
	return rc;
}
