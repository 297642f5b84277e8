/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/selections/select_density.h"

#include <math.h>
#include <string.h>

const char *const gf_density_words[] = {"none", NULL};

size_t gf_density_count(double density, size_t count_elems)
{
	return (size_t)fmax(1, floor(density * (double)count_elems));
}

double gf_density_at(double density, const double *warmup, size_t nwarmup, size_t epoch)
{
	return epoch < nwarmup ? warmup[epoch] : density;
}

struct gf_density gf_density_of(const void *params)
{
	struct gf_density d;

	memcpy(&d, params, sizeof(d));
	return d;
}

size_t gf_density_warm(const void *params, size_t step, size_t epoch_steps, void *then)
{
	struct gf_density d = gf_density_of(params);
	size_t epoch = epoch_steps ? step / epoch_steps : d.nwarmup;

	if (epoch >= d.nwarmup)
		return 0;
	memcpy(then, &d.warmup_densities[epoch], sizeof(d.density));
	return (epoch + 1) * epoch_steps - step;
}

size_t gf_density_wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	*wires = gf_density_set(gf_density_of(params).density, message, GF_WIRE_GATHER);
	return 1;
}

double gf_density_greatest(double density, const double *warmup, size_t nwarmup)
{
	double most = density;

	for (size_t i = 0; i < nwarmup; i++)
		most = fmax(most, warmup[i]);
	return most;
}

#define ENTRY_BYTES 8

struct gf_wire gf_density_set(double density, const struct gf_wired *message,
			      enum gf_wire_kind kind)
{
	double k = (double)gf_density_count(density, (size_t)message->count_elems);

	return (struct gf_wire){kind, k, ENTRY_BYTES * k, 1, (size_t)message->count_elems};
}
