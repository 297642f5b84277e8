/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/importers.h"

/*
 * To add another program's measurement: import_NAME.c, which recognises a text, reads one half of a
 * profile, and says in in->imported (doc/imported.h) what it found and what it left out;
 * log_lines.h gives the lines of a log without launchers' labels. A table of one collective is a
 * row in import_tables.c. Its declaration in importers.h, a row below, a paragraph in
 * gf-profile(1), a file that the program has written in tests/data/import. A file that is only to
 * be named gets a row in lib/doc/foreign.c.
 */
/* clang-format off */
const struct gf_importer *const gf_importers[] = {
	&gf_importer_csv,
	&gf_importer_allreduce,
	&gf_importer_nccl_tests,
	&gf_importer_osu,
	&gf_importer_imb,
	&gf_importer_all_reduce_bench,
	&gf_importer_mscclpp,
	&gf_importer_inspector,
	&gf_importer_train,
	&gf_importer_kineto,
	NULL,
};
/* clang-format on */
