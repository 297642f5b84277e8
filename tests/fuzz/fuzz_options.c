/* SPDX-License-Identifier: BSD-3-Clause */
/* What people type: numbers with units, levels, lists of hosts, factors, slow ranks and links,
 * places to meet. An input is one argument, and every reader gets it. */
#include <math.h>

#include "base/units.h"
#include "harness.h"
#include "planner/axes.h"
#include "discovery/hostlist.h"
#include "discovery/find_levels.h"
#include "simulator/whatif/uneven_ranks.h"

/* Counts what is accepted. */
static int judge(int rc, const struct gf_error *err)
{
	if (rc)
		harness_expect_line(err, NULL);
	return !rc;
}

static int try_numbers(const char *text)
{
	struct gf_error err = {""};
	size_t bytes;
	double real = 0;
	long long whole = 0;
	int accepted = judge(gf_units_size(text, &bytes, &err), &err);

	if (judge(gf_units_rate(text, &real, &err), &err) && !(real > 0))
		harness_fail("a rate", "not above 0");
	if (judge(gf_units_flops(text, &real, &err), &err) && !(real > 0))
		harness_fail("a rate of operations", "not above 0");
	if (judge(gf_units_time(text, &real, &err), &err) && !(real >= 0))
		harness_fail("a time", "below 0");
	if (judge(gf_units_int(text, -5, 5, &whole, &err), &err) && (whole < -5 || whole > 5))
		harness_fail("a whole number", "out of its limits");
	if (judge(gf_units_real(text, -5, 5, &real, &err), &err) && !(fabs(real) <= 5))
		harness_fail("a number", "out of its limits");
	return accepted;
}

/* Lists of a million hosts are allowed, and take their time. */
static bool may_be_long(const char *text)
{
	size_t digits = 0;

	for (; *text; text++)
		digits += *text >= '0' && *text <= '9';
	return digits > 6;
}

static int try_lists(const char *text)
{
	struct gf_error err = {""};
	struct gf_hostlist hosts = {0};
	struct gf_topology topology = {0};
	struct gf_uneven uneven = {0};
	struct gf_axes axes;
	int accepted = 0;

	if (!may_be_long(text))
		accepted += judge(gf_hostlist_add(&hosts, text, &err), &err);
	accepted += judge(gf_levels_synthetic(text, &topology, &err), &err);
	accepted += judge(gf_uneven_add_slow(text, &uneven, &err), &err);
	accepted += judge(gf_uneven_add_links(text, &uneven, &err), &err);
	gf_axes_init(&axes);
	accepted += judge(gf_axes_read_factors(text, &axes, &err), &err);
	gf_axes_release(&axes);
	gf_uneven_release(&uneven);
	gf_topology_release(&topology);
	gf_hostlist_release(&hosts);
	return accepted;
}

static bool try_option(const char *data, size_t size, struct gf_rng *rng)
{
	(void)size;
	(void)rng;
	return try_numbers(data) + try_lists(data) > 0;
}

const struct harness harness = {.most_bytes = 512, .try = try_option};
