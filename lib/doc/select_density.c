/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/select_density.h"

#include <math.h>

const char *const gf_density_words[] = {"none", NULL};

size_t gf_density_count(double density, size_t count_elems)
{
	return (size_t)fmax(1, floor(density * (double)count_elems));
}

double gf_density_at(double density, const double *warmup, size_t nwarmup,
		     size_t epoch)
{
	return epoch < nwarmup ? warmup[epoch] : density;
}

size_t gf_density_warm(const double *warmup, size_t nwarmup, size_t step,
		       size_t epoch_steps, double *density)
{
	size_t epoch = epoch_steps ? step / epoch_steps : nwarmup;

	if (epoch >= nwarmup)
		return 0;
	*density = warmup[epoch];
	return (epoch + 1) * epoch_steps - step;
}

double gf_density_greatest(double density, const double *warmup, size_t nwarmup)
{
	double most = density;
	size_t i;

	for (i = 0; i < nwarmup; i++)
		most = fmax(most, warmup[i]);
	return most;
}

#define ENTRY_BYTES 8

struct gf_wire gf_density_set(double density, const struct gf_wired *message,
			      enum gf_wire_kind kind)
{
	double k =
		(double)gf_density_count(density, (size_t)message->count_elems);

	return (struct gf_wire){kind, k, ENTRY_BYTES * k, 1,
				(size_t)message->count_elems};
}
