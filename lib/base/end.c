/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/end.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/heap.h"

struct end {
	double seconds;
	int status;
};

static void *end_in_time(void *end)
{
	const struct end *e = end;

	gf_clock_sleep(e->seconds);
	_Exit(e->status);
}

bool gf_end_within(double seconds, int status)
{
	struct end *e = gf_xmalloc(sizeof(*e));
	pthread_t timer;

	*e = (struct end){seconds, status};
	if (pthread_create(&timer, NULL, end_in_time, e) == 0)
		return true;
	free(e);
	return false;
}
