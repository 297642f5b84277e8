/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers for the report on the papers' tables that no command prints.
 *
 * gf-figures printed: reads a profile, prints what ASC-WFBP's Algorithm 1 as printed takes per
 * iteration, and how many messages it sends.
 *
 * gf-figures: answers lines
 *
 *	ALGORITHM BYTES SERVERS all|gather FACTORS SIZE:ALPHA:BETA:GAMMA ...
 *
 * with the algorithm's closed form, in seconds, for f32 gradients on these levels. FACTORS is a
 * list such as 4,16,3, or "-". Servers are ranks beside those of the levels.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "asc_printed.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "documents/stream.h"

#define MOST 8 /* levels, factors */

static int answer(char *line, struct gf_error *err)
{
	int sizes[MOST], factors[MOST], used = 0, ranks = 1;
	struct gf_link_cost links[MOST] = {{0}}, *l = links;
	struct gf_cost_net net = {0, sizes, links};
	struct gf_coll_args args = {.elem_bytes = 4};
	char name[32] = "", half[8], list[64], *at;
	double bytes;
	int found = sscanf(line, "%31s %lf %d %7s %63s%n", name, &bytes, &args.servers, half, list,
			   &used);
	int rc;
	const struct gf_algorithm *a = gf_algorithm_find(name);

	for (at = line + used;
	     net.nlevels < MOST && sscanf(at, "%d:%lf:%lf:%lf%n", &sizes[net.nlevels], &l->alpha_s,
					  &l->beta_s_per_byte, &l->gamma_s_per_byte, &used) == 4;
	     at += used, l++)
		ranks *= sizes[net.nlevels++];
	if (found != 5 || !a || at[strspn(at, " \n")])
		return gf_error_set(err, -EINVAL, "want a question, got %s", line);
	for (at = strtok(list, ",-"); at && args.nfactors < MOST; at = strtok(NULL, ",-"))
		factors[args.nfactors++] = atoi(at);
	args.factors = args.nfactors ? factors : NULL;
	args.ranks = ranks + args.servers;
	args.count_elems = (size_t)(bytes / 4);
	args.half = strcmp(half, "gather") ? GF_COLL_WHOLE : GF_COLL_ALL_GATHER;
	rc = gf_coll_args_check(&args, err);
	if (!rc)
		printf("%.17g\n", a->cost(&args, &net).s);
	return rc;
}

static int printed(struct gf_error *err)
{
	GF_RELEASED(gf_documents_release) struct gf_documents d = {NULL};
	struct gf_problem in = {.lanes = 2};
	GF_RELEASED(gf_plan_release) struct gf_plan p = {0};
	int rc = gf_documents_add_of(&d, "-", "gf-profile", err);

	if (!rc && !(d.profile->model && d.profile->network))
		rc = gf_error_set(err, -EINVAL, "want a model and a network");
	if (!rc) {
		in.model = d.profile->model;
		in.fabric.network = d.profile->network;
		in.fabric.ranks = in.fabric.network->ranks;
		rc = gf_policy_run(&gf_policy_asc_printed, &in, &p, err);
	}
	if (!rc)
		printf("%.17g %zu\n", p.predicted->iteration_s, p.nmessages);
	return rc;
}

int main(int argc, char **argv)
{
	struct gf_error err = {""};
	char line[512];
	int rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(argv[1], "printed"))
		rc = printed(&err);
	else
		while (!rc && fgets(line, sizeof(line), stdin))
			rc = answer(line, &err);
	if (rc)
		fprintf(stderr, "gf-figures: %s\n", err.text);
	return rc ? 2 : 0;
}
