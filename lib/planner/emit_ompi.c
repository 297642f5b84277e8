/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI's rules file for coll_tuned, in the form without a version that 4.1
 * reads, and 5.0 and 6.0 still read (coll_tuned_dynamic_file.c). Number 2 is
 * MPI_Allreduce. A communicator takes the last rules of a size that is not
 * above its own, or the first; so sizes around the measured one have rules that
 * leave all to Open MPI (algorithm 0). A message takes the last rule that is
 * not above its bytes.
 */
#include "planner/emit.h"

#define ALLREDUCE 2

static void leave(int ranks, struct gf_text *out)
{
	gf_text_addf(out,
		     "%d  # ranks of a communicator\n"
		     "1\n"
		     "0 0 0 0\n",
		     ranks);
}

static int emit(const struct gf_picks *picks, struct gf_text *out,
		struct gf_error *err)
{
	const int ranks = picks->network->ranks;
	size_t i;

	(void)err;
	gf_text_addf(out, "# gradflow: rules for MPI_Allreduce of Open MPI\n"
			  "# mpirun --mca coll_tuned_use_dynamic_rules 1 "
			  "--mca coll_tuned_dynamic_rules_filename FILE ...\n");
	gf_picks_table(picks, out);
	gf_text_addf(out,
		     "1  # collective\n"
		     "%d  # MPI_Allreduce\n"
		     "3  # sizes of communicators\n",
		     ALLREDUCE);
	leave(0, out);
	gf_text_addf(out,
		     "%d  # ranks of a communicator\n"
		     "%zu  # rules: from bytes, algorithm, 0, bytes of a "
		     "segment\n",
		     ranks, picks->count);
	for (i = 0; i < picks->count; i++) {
		const struct gf_tuning *t = &picks->list[i].tuning;

		gf_text_addf(out, "%zu %d 0 %zu\n", picks->list[i].from_bytes,
			     t->algorithm ? t->algorithm->number : 0,
			     t->segment_bytes);
	}
	leave(ranks + 1, out);
	return 0;
}

const struct gf_emitter gf_emitter_ompi = {
	.name = "ompi",
	.description = "MPI_Allreduce of Open MPI, a rules file",
	.version = "Open MPI 4.1.4, 5.0.9",
	.takes = GF_EMIT_SIZES,
	.program = "Open MPI",
	.wish = {.library = "Open MPI"},
	.emit_picks = emit,
};
