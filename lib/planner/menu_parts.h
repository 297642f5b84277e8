/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_MENU_PARTS_H
#define GF_PLANNER_MENU_PARTS_H

#include "planner/menu.h"

/* Once a menu's options are complete, each of these derives one group of the
 * menu's fields from them; gf_menu_release frees all. */

/* Before: of thousands of ways, forgets those that come nowhere near the best.
 */
void gf_menu_drop_far(struct gf_menu *m);
void gf_menu_find_envelope(struct gf_menu *m);
void gf_menu_find_floors(struct gf_menu *m);
/* After the envelope, which stands in where the choices are too many. */
void gf_menu_find_choices(struct gf_menu *m);

#endif
