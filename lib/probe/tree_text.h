/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_TREE_TEXT_H
#define GF_PROBE_TREE_TEXT_H

#include <stdbool.h>

#include "base/text.h"
#include "doc/topology.h"

/* Draws a topology for people: levels from the outside in, then the hosts with
 * what they have, every figure with its origin. Hosts stand under their switch,
 * and neighbours that are alike on one line. ascii: without the lines of
 * Unicode. */
void gf_tree_draw(const struct gf_topology *t, bool ascii, struct gf_text *out);

#endif
