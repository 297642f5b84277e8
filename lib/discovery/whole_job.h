/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_WHOLE_JOB_H
#define GF_DISCOVERY_WHOLE_JOB_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "discovery/discovery.h"
#include "discovery/find_levels.h"
#include "documents/topology.h"
#include "transport/comm.h"

/*
 * The topology of a running job: one rank of each host looks around, rank 0 puts the hosts together
 * (in the order of their first ranks) and finds the levels.
 */
struct gf_discover_job {
	struct gf_discover_config probe;
	enum gf_ranks_on ranks_on;
	/* All ranks copy memory at the same time; the slowest rank's rate becomes the bandwidth of
	 * a shm level. */
	bool measure;
};

/* Collective. On rank 0 fills a zeroed t (name and producer excepted) and adds to remark; on others
 * touches neither. All ranks return alike. */
int gf_discover_job(struct gf_comm *comm, const struct gf_discover_job *job, struct gf_topology *t,
		    struct gf_text *remark, struct gf_error *err);

/* Collective: on every rank the topology that rank 0 was given (NULL: none; ignored elsewhere), if
 * it is of as many ranks as the job, else one that gf_discover_job finds. All ranks return alike; t
 * was zeroed. */
int gf_discover_job_topology(struct gf_comm *comm, const struct gf_topology *given,
			     struct gf_topology *t, struct gf_error *err);

/* The host of another rank's answer, a topology document of one host. -EINVAL names the source. */
int gf_discover_host_read(const char *text, size_t length, const char *source, struct gf_host *host,
			  struct gf_error *err);

#endif
