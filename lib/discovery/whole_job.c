/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/whole_job.h"

#include <string.h>

#include "base/heap.h"
#include "json/json.h"

static void name_lines(const struct gf_text *lines, const char *host, struct gf_text *named)
{
	const char *at = lines->data;

	while (at && *at) {
		size_t length = strcspn(at, "\n");

		gf_text_addf(named, "%s: %.*s\n", host, (int)length, at);
		at += length + (at[length] == '\n');
	}
}

/* This host as the text of a topology document of its own, and what there is to say about it. */
static int describe_host(const struct gf_discover_job *job, char **text, struct gf_text *remarks,
			 struct gf_error *err)
{
	struct gf_discover_config config = job->probe;
	GF_RELEASED(gf_topology_release) struct gf_topology t = {0};
	GF_RELEASED(gf_text_release) struct gf_text said = {0};
	int rc;

	config.remarks = &said;

	t.producer = gf_xstrdup("gf-topo " GF_VERSION);
	t.name = gf_xstrdup("host");
	t.source = gf_xstrdup("discovered");
	t.hosts = gf_xcalloc(1, sizeof(*t.hosts));
	rc = gf_discover_host(&config, &t.hosts[0], err);
	if (rc == 0) {
		t.nhosts = 1;
		name_lines(&said, t.hosts[0].name, remarks);
		rc = gf_levels_of_host(&t, GF_RANKS_ON_CPU, NULL, err);
	}
	if (rc == 0)
		*text = gf_topology_write(&t);
	return rc;
}

int gf_discover_host_read(const char *text, size_t length, const char *source, struct gf_host *host,
			  struct gf_error *err)
{
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	GF_RELEASED(gf_topology_release) struct gf_topology t = {0};
	int rc = gf_json_parse(text, length, source, &root, err);

	rc = rc ?: gf_topology_read(root, source, &t, err);
	if (rc == 0 && t.nhosts != 1)
		rc = gf_error_set(err, -EINVAL, "%s: /hosts: want one host, got %zu", source,
				  t.nhosts);
	if (rc == 0) {
		*host = t.hosts[0];
		memset(&t.hosts[0], 0, sizeof(t.hosts[0]));
	}
	return rc;
}

/* The answers that rank 0 gathered. */
struct answers {
	int *first;      /* per rank: the lowest rank on its host */
	size_t *lengths; /* per rank: of its part of texts */
	char *texts;
	size_t *remark_lengths;
	char *remarks; /* all ranks' lines */
};

/* Rank 0: all hosts, and which of them each rank is on. */
static int collect_hosts(const struct answers *a, int ranks, struct gf_topology *t, size_t *host_of,
			 struct gf_error *err)
{
	const char *text = a->texts;
	int r, rc;

	t->hosts = gf_xcalloc((size_t)ranks, sizeof(*t->hosts));
	for (r = 0; r < ranks; text += a->lengths[r], r++) {
		if (a->first[r] < r) {
			host_of[r] = host_of[a->first[r]];
			continue;
		}
		rc = gf_discover_host_read(text, a->lengths[r], "a host's answer",
					   &t->hosts[t->nhosts], err);
		if (rc < 0) {
			gf_error_prefix(err, "rank %d", r);
			return rc;
		}
		host_of[r] = t->nhosts++;
	}
	return 0;
}

static int measure_copy(struct gf_comm *c, double *slowest, struct gf_error *err)
{
	double mine = 0, *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int r, rc = gf_comm_barrier(c, err);

	rc = rc ?: gf_comm_agree(c, gf_discover_copy_rate(&mine, err), err);
	rc = rc ?: gf_comm_allgather(c, &mine, sizeof(mine), all, err);
	*slowest = mine;
	for (r = 0; rc == 0 && r < c->ranks; r++)
		if (all[r] < *slowest)
			*slowest = all[r];
	free(all);
	return rc;
}

static int gather(struct gf_comm *c, const struct gf_discover_job *job, struct answers *a,
		  struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text remarks = {0};
	GF_FREED char *mine = NULL;
	int rc, own = 0;

	rc = gf_comm_allgather(c, &c->host, sizeof(c->host), a->first, err);
	if (rc < 0)
		return rc;
	if (c->host == c->rank)
		own = describe_host(job, &mine, &remarks, err);
	rc = gf_comm_agree(c, own, err);
	if (rc == 0)
		rc = gf_comm_gather_text(c, 0, mine ? mine : "", mine ? strlen(mine) : 0, &a->texts,
					 a->lengths, err);
	if (rc == 0)
		rc = gf_comm_gather_text(c, 0, remarks.data ? remarks.data : "", remarks.length,
					 &a->remarks, a->remark_lengths, err);
	return rc;
}

/* Rank 0's part, from the gathered texts to the levels. */
static int assemble(const struct gf_discover_job *job, const struct answers *a, int ranks,
		    struct gf_topology *t, struct gf_text *remark, struct gf_error *err)
{
	GF_FREED size_t *host_of = gf_xcalloc((size_t)ranks, sizeof(*host_of));
	int rc = collect_hosts(a, ranks, t, host_of, err);

	if (rc == 0 && a->remarks)
		gf_text_add(remark, a->remarks, strlen(a->remarks));
	return rc ?: gf_levels_of_job(t, host_of, ranks, job->ranks_on, remark, err);
}

int gf_discover_job(struct gf_comm *c, const struct gf_discover_job *job, struct gf_topology *t,
		    struct gf_text *remark, struct gf_error *err)
{
	struct answers a = {
		.first = gf_xcalloc((size_t)c->ranks, sizeof(*a.first)),
		.lengths = gf_xcalloc((size_t)c->ranks, sizeof(*a.lengths)),
		.remark_lengths = gf_xcalloc((size_t)c->ranks, sizeof(*a.remark_lengths)),
	};
	double copy_rate = 0;
	int rc, own = 0;

	rc = gather(c, job, &a, err);
	if (rc == 0 && job->measure)
		rc = measure_copy(c, &copy_rate, err);
	if (rc == 0) {
		if (c->rank == 0)
			own = assemble(job, &a, c->ranks, t, remark, err);
		rc = gf_comm_agree(c, own, err);
	}
	if (rc == 0 && c->rank == 0 && job->measure)
		gf_levels_set_copy_rate(t, copy_rate);
	if (rc < 0 && c->rank == 0)
		gf_topology_release(t);
	free(a.first);
	free(a.lengths);
	free(a.texts);
	free(a.remarks);
	free(a.remark_lengths);
	return rc;
}

/* The topology as text, for the other ranks. */
static int find(struct gf_comm *c, char **text, struct gf_error *err)
{
	struct gf_discover_job job = {
		.probe = {.sysfs = GF_DISCOVER_SYSFS, .nvml = GF_DISCOVER_NVML}};
	GF_RELEASED(gf_text_release) struct gf_text remark = {0};
	GF_RELEASED(gf_topology_release) struct gf_topology t = {0};
	int rc = gf_discover_job(c, &job, &t, &remark, err);

	if (rc == 0 && c->rank == 0) {
		t.producer = gf_xstrdup("gf-topo " GF_VERSION);
		t.name = gf_xstrdup("job");
		t.source = gf_xstrdup("discovered");
		*text = gf_topology_write(&t);
	}
	return rc;
}

int gf_discover_job_topology(struct gf_comm *c, const struct gf_topology *given,
			     struct gf_topology *t, struct gf_error *err)
{
	int have = c->rank == 0 && given && given->ranks == c->ranks, rc;
	GF_FREED char *text = have ? gf_topology_write(given) : NULL;
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	size_t length = 0;

	rc = gf_comm_bcast(c, 0, &have, sizeof(have), err);
	if (rc == 0 && !have)
		rc = find(c, &text, err);
	if (rc == 0) {
		length = text ? strlen(text) : 0;
		rc = gf_comm_bcast_text(c, 0, &text, &length, err);
	}
	if (rc == 0) {
		rc = gf_json_parse(text, length, "the topology", &root, err);
		rc = rc ?: gf_topology_read(root, "the topology", t, err);
		rc = gf_comm_agree(c, rc, err);
	}
	return rc;
}
