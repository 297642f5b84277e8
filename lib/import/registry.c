/* SPDX-License-Identifier: BSD-3-Clause */
#include "import/importers.h"

const struct gf_importer *const gf_importers[] = {
	&gf_importer_csv,
	&gf_importer_allreduce,
	&gf_importer_nccl_tests,
	&gf_importer_osu,
	&gf_importer_inspector,
	&gf_importer_kineto,
	NULL,
};
