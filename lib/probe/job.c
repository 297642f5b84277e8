/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/digest.h"
#include "base/heap.h"
#include "probe/sysfs.h"

/*
 * Names alone do not tell hosts apart (containers are often all called the
 * same), and neither does the boot id (emulated hosts share a kernel).
 */
static void identify(const char *identity, unsigned char out[GF_DIGEST_BYTES])
{
	struct utsname names = {0};
	struct gf_digest digest;
	char boot[64] = "";

	gf_digest_init(&digest);
	if (identity) {
		gf_digest_add(&digest, identity, strlen(identity));
	} else {
		uname(&names);
		gf_sysfs_line(boot, sizeof(boot),
			      "/proc/sys/kernel/random/boot_id");
		gf_digest_add(&digest, names.nodename,
			      strlen(names.nodename) + 1);
		gf_digest_add(&digest, boot, strlen(boot));
	}
	gf_digest_end(&digest, out);
}

/* first[r]: the lowest rank on the host of rank r. */
static int group_ranks(struct gf_comm *c, const char *identity, int *first,
		       struct gf_error *err)
{
	unsigned char mine[GF_DIGEST_BYTES];
	unsigned char(*all)[GF_DIGEST_BYTES] =
		gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int r, rc;

	identify(identity, mine);
	rc = gf_comm_allgather(c, mine, sizeof(mine), all, err);
	for (r = 0; rc == 0 && r < c->ranks; r++) {
		first[r] = 0;
		while (memcmp(all[first[r]], all[r], sizeof(*all)) != 0)
			first[r]++;
	}
	free(all);
	return rc;
}

/* This host as the text of a topology document of its own. */
static int describe_host(const struct gf_probe_job *job, char **text,
			 struct gf_error *err)
{
	struct gf_topology t = {0};
	int rc;

	t.producer = gf_xstrdup("gf-topo " GF_VERSION);
	t.name = gf_xstrdup("host");
	t.source = gf_xstrdup("discovered");
	t.hosts = gf_xcalloc(1, sizeof(*t.hosts));
	rc = gf_probe_host(&job->probe, &t.hosts[0], err);
	if (rc == 0) {
		t.nhosts = 1;
		rc = gf_levels_of_host(&t, GF_RANKS_ON_CPU, err);
	}
	if (rc == 0)
		*text = gf_topology_write(&t);
	gf_topology_release(&t);
	return rc;
}

/* Takes the host out of such a document. */
static int read_host(const char *text, size_t length, struct gf_host *host,
		     struct gf_error *err)
{
	struct gf_json *root = NULL;
	struct gf_topology t = {0};
	int rc = gf_json_parse(text, length, "a host's answer", &root, err);

	if (rc == 0)
		rc = gf_topology_read(root, "a host's answer", &t, err);
	if (rc == 0) {
		*host = t.hosts[0];
		memset(&t.hosts[0], 0, sizeof(t.hosts[0]));
		gf_topology_release(&t);
	}
	gf_json_free(root);
	return rc;
}

/* Rank 0: all hosts, and which of them each rank is on. */
static int collect_hosts(const struct gf_comm *c, const int *first,
			 const char *texts, const size_t *lengths,
			 struct gf_topology *t, size_t *host_of,
			 struct gf_error *err)
{
	int r, rc;

	t->hosts = gf_xcalloc((size_t)c->ranks, sizeof(*t->hosts));
	for (r = 0; r < c->ranks; texts += lengths[r], r++) {
		if (first[r] < r) {
			host_of[r] = host_of[first[r]];
			continue;
		}
		rc = read_host(texts, lengths[r], &t->hosts[t->nhosts], err);
		if (rc < 0) {
			gf_error_prefix(err, "rank %d", r);
			return rc;
		}
		host_of[r] = t->nhosts++;
	}
	return 0;
}

static int measure_copy(struct gf_comm *c, double *slowest,
			struct gf_error *err)
{
	double mine = 0, *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int r, rc = gf_comm_barrier(c, err);

	if (rc == 0)
		rc = gf_comm_agree(c, gf_probe_copy_rate(&mine, err), err);
	if (rc == 0)
		rc = gf_comm_allgather(c, &mine, sizeof(mine), all, err);
	*slowest = mine;
	for (r = 0; rc == 0 && r < c->ranks; r++)
		if (all[r] < *slowest)
			*slowest = all[r];
	free(all);
	return rc;
}

/* Rank 0's part, from the gathered texts to the levels. */
static int assemble(const struct gf_comm *c, const struct gf_probe_job *job,
		    const int *first, const char *texts, const size_t *lengths,
		    struct gf_topology *t, struct gf_text *remark,
		    struct gf_error *err)
{
	size_t *host_of = gf_xcalloc((size_t)c->ranks, sizeof(*host_of));
	int rc = collect_hosts(c, first, texts, lengths, t, host_of, err);

	if (rc == 0)
		rc = gf_levels_of_job(t, host_of, c->ranks, job->ranks_on,
				      remark, err);
	free(host_of);
	return rc;
}

int gf_probe_job(struct gf_comm *c, const struct gf_probe_job *job,
		 struct gf_topology *t, struct gf_text *remark,
		 struct gf_error *err)
{
	int *first = gf_xcalloc((size_t)c->ranks, sizeof(*first));
	size_t *lengths = gf_xcalloc((size_t)c->ranks, sizeof(*lengths));
	char *mine = NULL, *all = NULL;
	double copy_rate = 0;
	int rc, own = 0;

	rc = group_ranks(c, job->identity, first, err);
	if (rc < 0)
		goto out;
	if (first[c->rank] == c->rank)
		own = describe_host(job, &mine, err);
	rc = gf_comm_agree(c, own, err);
	if (rc == 0)
		rc = gf_comm_gather_text(c, 0, mine ? mine : "",
					 mine ? strlen(mine) : 0, &all, lengths,
					 err);
	if (rc == 0 && job->measure)
		rc = measure_copy(c, &copy_rate, err);
	if (rc < 0)
		goto out;
	if (c->rank == 0)
		own = assemble(c, job, first, all, lengths, t, remark, err);
	rc = gf_comm_agree(c, own, err);
	if (rc == 0 && c->rank == 0 && job->measure)
		gf_levels_set_copy_rate(t, copy_rate);
out:
	if (rc < 0 && c->rank == 0)
		gf_topology_release(t);
	free(first);
	free(lengths);
	free(mine);
	free(all);
	return rc;
}
