/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "transport/join_state.h"

/* More ranks than that are counted, not listed. */
#define LISTED 8

int gf_place_missing(const struct gf_join_place *p, const bool *come, struct gf_error *err)
{
	struct gf_text t = {0};
	int rank, missing = 0, listed = 0;

	for (rank = 0; rank < p->ranks; rank++)
		missing += !come[rank];
	for (rank = 0; rank < p->ranks && listed < LISTED; rank++)
		if (!come[rank])
			gf_text_addf(&t, "%s %d", listed++ ? "," : "", rank);
	if (missing > LISTED)
		gf_text_addf(&t, " and %d more", missing - LISTED);
	gf_text_addf(&t, missing > 1 ? " have" : " has");
	gf_error_set(err, 0, "%s: waited %g s, and %s%s not come", p->name, p->timeout_s,
		     missing > 1 ? "ranks" : "rank", t.data);
	gf_text_release(&t);
	return -ETIMEDOUT;
}

bool gf_join_is_port(const char *place)
{
	const char *colon = strrchr(place, ':');

	return !strchr(place, '/') && colon && colon > place && colon[1] &&
	       strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

static int check_port(const char *place, struct gf_error *err)
{
	const char *digits = strrchr(place, ':') + 1;
	unsigned long port = strtoul(digits, NULL, 10);

	return port >= 1 && port <= UINT16_MAX
		       ? 0
		       : gf_error_set(err, -EINVAL, "%s: want a port from 1 to %d, got %s", place,
				      UINT16_MAX, digits);
}

static int show(void *place, const void *send, size_t size_bytes, void *recv, struct gf_error *err)
{
	struct gf_join_place *p = place;

	if (size_bytes > GF_PLACE_MOST_BYTES)
		return gf_error_set(err, -EMSGSIZE, "%s: want at most %zu bytes of a rank, got %zu",
				    p->name, GF_PLACE_MOST_BYTES, size_bytes);
	return gf_port_allgather(p, send, size_bytes, recv, err);
}

int gf_join_open(const char *place, double timeout_s, struct gf_join *join, struct gf_error *err)
{
	struct gf_join_place *p;
	int rc;

	if (join->ranks < 1 || join->rank < 0 || join->rank >= join->ranks)
		return gf_error_set(err, -EINVAL, "%s: want 0 <= rank < ranks, got rank %d of %d",
				    place, join->rank, join->ranks);
	rc = gf_join_is_port(place) ? check_port(place, err) : 0;
	if (rc)
		return rc;
	p = gf_xcalloc(1, sizeof(*p));
	*p = (struct gf_join_place){
		.name = gf_xstrdup(place),
		.folder = !gf_join_is_port(place),
		.rank = join->rank,
		.ranks = join->ranks,
		.timeout_s = timeout_s,
	};
	join->allgather = show;
	join->ctx = p;
	rc = gf_port_open(p, join->key, err);
	if (rc)
		gf_join_close(join);
	return rc;
}

void gf_join_close(struct gf_join *join)
{
	struct gf_join_place *p = join->ctx;

	gf_port_close(p);
	free(p->name);
	free(p);
	join->ctx = NULL;
}
