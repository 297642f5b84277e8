/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_LIST_H
#define GF_CLI_LIST_H

#include "base/error.h"

/* Calls item for every part of a comma-separated argument, empty ones too,
 * until one fails. */
int gf_cli_list(const char *arg,
		int (*item)(void *ctx, const char *text, struct gf_error *err),
		void *ctx, struct gf_error *err);

#endif
