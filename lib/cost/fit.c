/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/fit.h"

#include <errno.h>
#include <math.h>

/*
 * Sums over the points, each weighted 1/time^2, of size and time about their weighted means:
 * centring keeps the normal equations well conditioned for sizes from 1 KiB to 1 GiB.
 */
struct sums {
	double weight, mean_size, mean_time;
	double size_size, size_time; /* centred */
	double raw_size_size, raw_size_time;
};

static struct sums sum_up(const double *size, const double *time, size_t count)
{
	struct sums s = {0};
	size_t i;

	for (i = 0; i < count; i++) {
		double w = 1 / (time[i] * time[i]);

		s.weight += w;
		s.mean_size += w * size[i];
		s.mean_time += w * time[i];
	}
	s.mean_size /= s.weight;
	s.mean_time /= s.weight;
	for (i = 0; i < count; i++) {
		double w = 1 / (time[i] * time[i]);
		double dx = size[i] - s.mean_size, dy = time[i] - s.mean_time;

		s.size_size += w * dx * dx;
		s.size_time += w * dx * dy;
		s.raw_size_size += w * size[i] * size[i];
		s.raw_size_time += w * size[i] * time[i];
	}
	return s;
}

static int check(const double *size, const double *time, size_t count, struct gf_error *err)
{
	int distinct = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!(time[i] > 0) || !isfinite(time[i]))
			return gf_error_set(err, -EINVAL,
					    "fit: want times > 0, got %g s at %.0f bytes", time[i],
					    size[i]);
		if (!(size[i] >= 0) || !isfinite(size[i]))
			return gf_error_set(err, -EINVAL, "fit: want sizes >= 0, got %g", size[i]);
		distinct |= size[i] != size[0];
	}
	if (!distinct)
		return gf_error_set(err, -EINVAL,
				    "fit: want at least 2 distinct sizes, got %zu points of %s",
				    count, count ? "one size" : "none");
	return 0;
}

int gf_fit_linear(const double *size_bytes, const double *time_s, size_t count,
		  struct gf_linear_fit *fit, struct gf_error *err)
{
	struct gf_linear_fit f = {0};
	struct sums s;
	int rc = check(size_bytes, time_s, count, err);

	if (rc < 0)
		return rc;
	s = sum_up(size_bytes, time_s, count);
	f.per_byte_s = s.size_time / s.size_size;
	f.startup_s = s.mean_time - f.per_byte_s * s.mean_size;
	if (f.per_byte_s < 0) {
		f.clamped_slope = 1;
		f.per_byte_s = 0;
		f.startup_s = s.mean_time;
	} else if (f.startup_s < 0) {
		f.clamped_startup = 1;
		f.startup_s = 0;
		f.per_byte_s = s.raw_size_time / s.raw_size_size;
	}
	*fit = f;
	return 0;
}
