/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/gunzip.h"
#include "import/importers.h"
#include "import/job.h"

struct files {
	struct gf_import_job *job; /* NULL: files are recognised alone */
	const struct gf_plan *plan;
	int before; /* files that came before this folder's */
	int count;
	const struct gf_importer *importer; /* of the first */
};

static int take(void *ctx, const char *file, int number, int count,
		struct gf_error *err)
{
	struct files *f = ctx;
	struct gf_import in = {.file = file,
			       .rank = f->before + number,
			       .plan = f->plan,
			       .imported = f->job ? &f->job->imported : NULL};
	const struct gf_importer *importer;
	char *text = NULL;
	int rc;

	if (!f->job && f->importer)
		return 0;
	rc = gf_gunzip_read(file, &text, &in.size, err);
	if (rc < 0)
		return rc;
	in.text = text;
	f->count = count;
	rc = gf_import_find(&in, NULL, &importer, err);
	if (rc < 0)
		;
	else if (!f->job)
		f->importer = importer;
	else if (!importer->job)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a trace of a job's ranks, got %s",
				  file, importer->description);
	else if (f->importer && f->importer != importer)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want %s, as the first file is, got %s",
				  file, f->importer->description,
				  importer->description);
	if (rc == 0 && f->job) {
		f->importer = importer;
		f->job->imported.kind = importer->name;
		rc = importer->job(&in, f->job, err);
	}
	free(text);
	return rc;
}

int gf_import_is_job(const char *path, struct gf_error *err)
{
	struct files f = {0};
	int rc = gf_import_each(path, take, &f, err);

	return rc ? rc : f.importer->job != NULL;
}

int gf_import_job_read(struct gf_import_job *job, const char *const *paths,
		       size_t npaths, const struct gf_plan *p,
		       struct gf_error *err)
{
	struct files f = {.job = job, .plan = p};
	size_t i, steps = 0;
	int rc = 0;

	for (i = 0; i < npaths && rc == 0; i++) {
		rc = gf_import_each(paths[i], take, &f, err);
		f.before += f.count;
	}
	if (rc < 0)
		return rc;
	gf_import_job_finish(job);
	for (i = 0; i < job->nranks; i++)
		steps += job->ranks[i].nsteps;
	gf_imported_find(&job->imported, "%zu rank%s, %zu steps of ranks",
			 job->nranks, job->nranks == 1 ? "" : "s", steps);
	return 0;
}
