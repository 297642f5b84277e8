/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules files of Open MPI's components. coll_tuned has one in the form without a version that 4.1
 * reads, and 5.0 and 6.0 still read (coll_tuned_dynamic_file.c); number 2 is MPI_Allreduce. Since
 * 5.0 han stands before coll_tuned between hosts, so its file (coll_han_dynamic_file.c) leaves
 * those sizes to coll_tuned that are told something, and no others. In both a communicator takes
 * the last rules of a size that is not above its own, or the first; so sizes around the measured
 * one have rules that leave all to Open MPI (algorithm 0, or han). A message takes the last rule
 * that is not above its bytes.
 */
#include "settings/emit.h"

#include <stdio.h>
#include <string.h>

static void add_rule(const struct gf_pick *p, bool han, struct gf_text *out)
{
	const struct gf_dialect_word *a = p->tuning.algorithm;

	gf_text_addf(out, "%zu ", p->from_bytes);
	if (han)
		gf_text_addf(out, "%s\n", a ? "tuned" : "han");
	else
		gf_text_addf(out, "%d 0 %zu\n", a ? a->number : 0, p->tuning.segment_bytes);
}

static void add_rules(const struct gf_picks *picks, bool han, struct gf_text *out)
{
	static const struct gf_pick as_it_is;
	const int ranks = picks->network->ranks, sizes[] = {han, ranks, ranks + 1};
	size_t n, i, k;

	gf_text_addf(out, "3  # sizes of communicators\n");
	for (k = 0; k < 3; k++) {
		n = k == 1 ? picks->count : 1;
		gf_text_addf(out,
			     "%d  # ranks of a communicator\n"
			     "%zu  # rules: from bytes, and what then\n",
			     sizes[k], n);
		for (i = 0; i < n; i++)
			add_rule(k == 1 ? &picks->list[i] : &as_it_is, han, out);
	}
}

/* Does han have these ranks, and read rules by names? A version that is not known may be 5. 1:
 * another component stands before coll_tuned, and reads no rules. */
static int find_han(const struct gf_network *net, bool *has, struct gf_error *err)
{
	const char *before = strstr(net->library, " with ");
	int version = 5;

	sscanf(net->library, "Open MPI %d", &version);
	*has = version >= 5 && net->hosts != 1;
	if (!before || (*has && strncmp(before, " with han ", 10) == 0))
		return 0;
	return gf_error_set(
		err, 1,
		"--emit ompi: want coll_tuned, which reads the rules, to carry out MPI_Allreduce, "
		"got %s (leave that out by --mca coll ^NAME, and measure again)",
		net->library);
}

static int emit(const struct gf_picks *picks, struct gf_text *out, struct gf_error *err)
{
	bool han;
	int rc = find_han(picks->network, &han, err);

	if (rc)
		return rc;
	gf_text_addf(out,
		     "# gradflow: rules for MPI_Allreduce of Open MPI\n"
		     "# mpirun --mca coll_tuned_use_dynamic_rules 1 --mca "
		     "coll_tuned_dynamic_rules_filename FILE%s ...\n",
		     han ? " --mca coll_han_use_dynamic_file_rules 1 --mca "
			   "coll_han_dynamic_rules_filename HAN"
			 : "");
	if (han)
		gf_text_addf(out, "# HAN is from gf-plan --emit ompi-han. Without it han has "
				  "MPI_Allreduce between hosts, and no rule here counts.\n");
	gf_picks_table(picks, out);
	gf_text_addf(out, "1  # collective\n2  # MPI_Allreduce\n");
	add_rules(picks, false, out);
	return 0;
}

static int emit_han(const struct gf_picks *picks, struct gf_text *out, struct gf_error *err)
{
	bool han;
	int rc = find_han(picks->network, &han, err);

	if (rc)
		return rc;
	if (!han)
		return gf_error_set(err, 1,
				    "--emit ompi-han: %s has no han before coll_tuned on these "
				    "hosts: change nothing",
				    picks->network->library);
	gf_text_addf(out, "# gradflow: MPI_Allreduce that han leaves to coll_tuned, whose rules "
			  "are from gf-plan --emit ompi\n1  # collective\nallreduce\n1  # level\n"
			  "global_communicator\n");
	add_rules(picks, true, out);
	return 0;
}

/* MANUAL
 * rules by which Open MPI's MPI_Allreduce chooses its algorithm and the size of its segments, for
 * the number of ranks that was measured; any program of MPI reads them by
 * .Ql mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename Ar file .
 * Refused where the profile says that another component than han stands before coll_tuned */
const struct gf_emitter gf_emitter_ompi = {
	.name = "ompi",
	.description = "MPI_Allreduce of Open MPI, a rules file",
	.place = 70,
	.version = "Open MPI 4.1.8, 5.0.11",
	.takes = GF_EMIT_SIZES,
	.program = "Open MPI",
	.wish = {.library = "Open MPI"},
	.emit_picks = emit,
};

/* MANUAL
 * rules by which han, which has MPI_Allreduce between hosts since Open MPI 5, leaves the sizes
 * that
 * .Cm ompi
 * tells something to coll_tuned, and keeps all others:
 * .Ql --mca coll_han_use_dynamic_file_rules 1 --mca coll_han_dynamic_rules_filename Ar file
 * beside the above */
const struct gf_emitter gf_emitter_ompi_han = {
	.name = "ompi-han",
	.description = "what Open MPI's han leaves to ompi's rules, a file",
	.place = 80,
	.version = "Open MPI 5.0.11",
	.takes = GF_EMIT_SIZES,
	.program = "Open MPI",
	.wish = {.library = "Open MPI"},
	.emit_picks = emit_han,
};
