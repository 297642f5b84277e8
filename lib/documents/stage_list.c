/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/stage_list.h"

#include <limits.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "documents/algorithm_traits.h"
#include "documents/shared_records.h"
#include "json/record.h"

#define AT(member) offsetof(struct gf_stage, member)
static const struct gf_field stage_fields[] = {
	{GF_MEMBER(factor, GF_FIELD_INT, GF_REQUIRED), .low = 2, .high = INT_MAX},
	{GF_MEMBER(algorithm, GF_FIELD_STRING, GF_REQUIRED)},
	{NULL},
};

const struct gf_record gf_stage_record = {
	GF_RECORD(struct gf_stage, stage_fields),
	.one_line = true,
};

struct gf_stage *gf_stages_copy(const struct gf_stage *stages, size_t n)
{
	return gf_list_copy(&gf_stage_record, stages, n);
}

void gf_stages_free(struct gf_stage *stages, size_t n)
{
	gf_list_free(&gf_stage_record, stages, n);
}

bool gf_stages_same(const struct gf_stage *a, size_t na, const struct gf_stage *b, size_t nb)
{
	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (a[i].factor != b[i].factor || strcmp(a[i].algorithm, b[i].algorithm) != 0)
			return false;
	return true;
}

double gf_stages_ranks(const struct gf_stage *stages, size_t n)
{
	double product = 1;

	for (size_t i = 0; i < n; i++)
		product *= stages[i].factor;
	return product;
}

bool gf_stages_call(const struct gf_stage *stages, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (gf_stage_has(stages[i].algorithm, GF_STAGE_CALL))
			return true;
	return false;
}

int gf_stages_check(const char *algorithm, const struct gf_stage *stages, size_t n,
		    struct gf_error *err)
{
	if (n && !gf_algorithm_has(algorithm, GF_ALGORITHM_LEVELS))
		return gf_error_set(
			err, -EINVAL,
			"want none with algorithm %.40s, which takes no factors, got %zu",
			algorithm, n);
	if (n && n != 2 && gf_algorithm_has(algorithm, GF_ALGORITHM_TWO_LEVELS))
		return gf_error_set(err, -EINVAL, "want 2 factors with algorithm %.40s, got %zu",
				    algorithm, n);
	for (size_t i = 0; i < n; i++) {
		const char *name = stages[i].algorithm;

		if (name && gf_stage_check(name, stages[i].factor, err)) {
			gf_error_prefix(err, "stage %zu", i);
			return -EINVAL;
		}
		if (name && !gf_stage_has(name, GF_STAGE_RING) &&
		    !gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES))
			return gf_error_set(err, -EINVAL, "want rings with algorithm %.40s, got %s",
					    algorithm, name);
	}
	return 0;
}

int gf_stages_check_hosts(const struct gf_stage *stages, size_t n, const struct gf_level *levels,
			  size_t nlevels, struct gf_error *err)
{
	const int host = gf_levels_host(levels, nlevels);
	int together = 1;

	if (!host || host >= gf_stages_ranks(stages, n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		together *= stages[i].factor;
		if (host % together && gf_stage_has(stages[i].algorithm, GF_STAGE_ONE_HOST))
			return gf_error_set(
				err, -ENOTSUP,
				"stage %zu: %s wants ranks of one host, which has %d, got %d", i,
				stages[i].algorithm, host, together);
	}
	return 0;
}

void gf_stages_text(struct gf_text *out, const char *between, const struct gf_stage *stages,
		    size_t n)
{
	for (size_t i = 0; i < n; i++)
		gf_text_addf(out, "%s%d:%s", i ? between : "", stages[i].factor,
			     stages[i].algorithm);
}

void gf_stages_text_of(struct gf_text *out, const char *algorithm, const struct gf_stage *stages,
		       size_t n)
{
	gf_text_addf(out, "%s%s", algorithm, n ? " " : "");
	gf_stages_text(out, " ", stages, n);
}

/* --- as people type them ----------------------------------------------------- */

static int parse_stage(char *text, struct gf_stage *stage, struct gf_error *err)
{
	char *name = strchr(text, ':');
	long long factor = 0;
	int rc;

	if (name)
		*name++ = '\0';
	rc = gf_units_int(text, 1, GF_RANKS_MAX, &factor, err);
	*stage = (struct gf_stage){.factor = (int)factor};
	if (rc == 0 && name) {
		stage->algorithm = (char *)gf_stage_algorithm(name);
		rc = gf_stage_check(name, stage->factor, err);
	}
	return rc;
}

int gf_stages_parse(const char *text, struct gf_stage **stages, size_t *n, struct gf_error *err)
{
	char *copy = gf_xstrdup(text), *rest = copy, *part;
	struct gf_stage stage;
	int rc = 0;

	*stages = NULL;
	*n = 0;
	while (rc == 0 && (part = strsep(&rest, "x,"))) {
		rc = parse_stage(part, &stage, err);
		if (rc < 0 || stage.factor == 1)
			continue;
		*stages = gf_xreallocarray(*stages, *n + 1, sizeof(**stages));
		(*stages)[(*n)++] = stage;
	}
	free(copy);
	return rc;
}
