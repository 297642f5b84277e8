/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/find_levels.h"

#include <ctype.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/units.h"
#include "discovery/discovery.h"

const char *const gf_ranks_on_names[] = {"auto", "cpu", "gpu", NULL};

struct link_default {
	const char *link;
	double bandwidth_bytes_per_s, latency_s;
};

/* The reasons stand in find_levels.h and gf-topo(1). Networks in order of preference. */
static const struct link_default shm = {"shm", 8e9, 1e-6};
static const struct link_default pcie = {"pcie", 12e9, 5e-6};
static const struct link_default networks[] = {
	{"infiniband", 12.5e9, 3e-6}, {"roce", 12.5e9, 5e-6},   {"ethernet", 1.25e9, 50e-6},
	{"ipoib", 1.25e9, 50e-6},     {"loopback", 8e9, 20e-6},
};

static struct gf_level assumed(const struct link_default *d)
{
	return (struct gf_level){
		.link = gf_xstrdup(d->link),
		.bandwidth_bytes_per_s = d->bandwidth_bytes_per_s,
		.latency_s = d->latency_s,
		.bandwidth_origin = GF_ORIGIN_ASSUMED,
		.latency_origin = GF_ORIGIN_ASSUMED,
	};
}

void gf_levels_append(struct gf_topology *t, struct gf_level level, const char *name, size_t size)
{
	t->levels = gf_xreallocarray(t->levels, t->nlevels + 1, sizeof(*t->levels));
	level.name = gf_xstrdup(name);
	level.size = size;
	t->levels[t->nlevels++] = level;
}

/* Ports of one kind that can carry traffic; 0 if none. */
static double rate_of_kind(const struct gf_host *host, const char *link, size_t *ports)
{
	/* Several ports of a fabric are driven together; of several Ethernet interfaces most are
	 * for management. */
	int add_up = strcmp(link, "infiniband") == 0 || strcmp(link, "roce") == 0;
	double rate = 0;

	*ports = 0;
	for (size_t i = 0; i < host->nnics; i++) {
		const struct gf_nic *n = &host->nics[i];

		if (strcmp(n->link, link) != 0 || strcmp(n->state, "down") == 0)
			continue;
		++*ports;
		if (add_up)
			rate += n->bandwidth_bytes_per_s;
		else if (n->bandwidth_bytes_per_s > rate)
			rate = n->bandwidth_bytes_per_s;
	}
	return rate;
}

void gf_levels_network_of(const struct gf_host *host, struct gf_level *level)
{
	size_t i, ports;

	for (i = 0; i < GF_ARRAY_LENGTH(networks); i++) {
		double rate = rate_of_kind(host, networks[i].link, &ports);

		if (ports == 0)
			continue;
		*level = assumed(&networks[i]);
		gf_discover_report(rate, &level->bandwidth_bytes_per_s, &level->bandwidth_origin);
		return;
	}
	/* A job that spans hosts has some network: assume plain Ethernet. */
	*level = assumed(&networks[2]);
}

struct gf_level gf_levels_shm(void)
{
	return assumed(&shm);
}

/* The first `wanted` accelerators over PCI Express, at the rate of the slowest. */
static struct gf_level devices_level(const struct gf_host *host, size_t wanted)
{
	struct gf_level level = assumed(&pcie);
	double slowest = 0;

	for (size_t i = 0; i < host->ndevices && i < wanted; i++) {
		double rate = host->devices[i].bandwidth_bytes_per_s;

		if (!(rate > 0))
			return level;
		if (slowest == 0 || rate < slowest)
			slowest = rate;
	}
	gf_discover_report(slowest, &level.bandwidth_bytes_per_s, &level.bandwidth_origin);
	return level;
}

/* Takes both links. */
static struct gf_level slower(struct gf_level a, struct gf_level b)
{
	if (b.bandwidth_bytes_per_s < a.bandwidth_bytes_per_s) {
		free(a.link);
		return b;
	}
	free(b.link);
	return a;
}

/* The slowest host's way out; per_rank: one rank's share of it. */
static struct gf_level network_level(const struct gf_topology *t, int per_rank)
{
	struct gf_level slowest = {0};

	for (size_t i = 0; i < t->nhosts; i++) {
		struct gf_level level;

		gf_levels_network_of(&t->hosts[i], &level);
		if (per_rank)
			level.bandwidth_bytes_per_s /= t->hosts[i].ranks;
		slowest = i ? slower(slowest, level) : level;
	}
	return slowest;
}

/* --- groups of accelerators ----------------------------------------------- */

static const double latency_s = 3e-6;

static const struct {
	int sm;
	double bytes_per_s;
} rates[] = {{100, 40.1e9}, {90, 20.6e9}, {86, 12e9}, {70, 20e9}, {60, 18e9}};

double gf_nvlink_rate(double sm)
{
	for (size_t i = 0; i < GF_ARRAY_LENGTH(rates); i++)
		if (sm >= rates[i].sm)
			return rates[i].bytes_per_s;
	return 0;
}

struct gf_nvlinked *gf_nvlinked_new(size_t n)
{
	struct gf_nvlinked *g = gf_xcalloc(n + 1, sizeof(*g));

	for (size_t i = 0; i < n; i++) {
		g[i].group = i;
		g[i].link = "nvlink";
	}
	return g;
}

void gf_nvlinked_join(struct gf_nvlinked *g, size_t n, size_t a, size_t b)
{
	size_t i, from = g[a].group, to = g[b].group;

	if (from < to) {
		i = from;
		from = to;
		to = i;
	}
	for (i = 0; i < n; i++)
		if (g[i].group == from)
			g[i].group = to;
}

/* Is any connected to another? */
static bool is_any(const struct gf_nvlinked *g, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (g[i].group != i)
			return true;
	return false;
}

/* GPUs k*size .. k*size + size-1 together, for all k? Then size, else 1. */
static size_t size_of(const struct gf_nvlinked *g, size_t n)
{
	size_t size = 0, i;

	while (size < n && g[size].group == 0)
		size++;
	for (i = 0; i < n; i++)
		if (n % size != 0 || g[i].group != i - i % size)
			return 1;
	return size ? size : 1;
}

/* Link, bandwidth of the slowest of them, and latency. */
static struct gf_level level_of(const struct gf_nvlinked *g, size_t n)
{
	struct gf_level l = {
		.link = gf_xstrdup(g[0].link),
		.latency_s = latency_s,
		.bandwidth_bytes_per_s = g[0].bytes_per_s,
		.bandwidth_origin = g[0].origin,
	};

	for (size_t i = 1; i < n; i++)
		if (g[i].bytes_per_s < l.bandwidth_bytes_per_s) {
			l.bandwidth_bytes_per_s = g[i].bytes_per_s;
			l.bandwidth_origin = g[i].origin;
		}
	if (!(l.bandwidth_bytes_per_s > 0)) {
		l.bandwidth_bytes_per_s = gf_nvlink_rate(70);
		l.bandwidth_origin = GF_ORIGIN_ASSUMED;
	}
	return l;
}

static size_t index_of(const struct gf_host *h, size_t n, const char *pci)
{
	for (size_t i = 0; i < n; i++)
		if (h->devices[i].pci && strcmp(h->devices[i].pci, pci) == 0)
			return i;
	return n;
}

/* The rates of direct links to several GPUs add up. To a switch there is one set of links, however
 * many GPUs it connects. */
static void count_rate(struct gf_nvlinked *g, const struct gf_device_link *l)
{
	if (l->path != GF_PATH_NVSWITCH)
		g->bytes_per_s += l->bandwidth_bytes_per_s;
	else if (l->bandwidth_bytes_per_s > g->bytes_per_s)
		g->bytes_per_s = l->bandwidth_bytes_per_s;
	g->origin = l->bandwidth_origin;
	if (l->path == GF_PATH_XGMI)
		g->link = "xgmi";
}

/* The first n devices of a host, by its links. */
static struct gf_nvlinked *of_host(const struct gf_host *host, size_t n)
{
	struct gf_nvlinked *g = gf_nvlinked_new(n);

	for (size_t i = 0; i < host->nlinks; i++) {
		const struct gf_device_link *l = &host->links[i];
		size_t a = index_of(host, n, l->from);
		size_t b = index_of(host, n, l->to);

		if (l->path == GF_PATH_UNKNOWN || l->path > GF_PATH_NVSWITCH || a == n || b == n)
			continue;
		gf_nvlinked_join(g, n, a, b);
		count_rate(&g[a], l);
		count_rate(&g[b], l);
	}
	return g;
}

static struct gf_level pcie_level(const struct gf_topology *t, size_t size)
{
	struct gf_level level = devices_level(&t->hosts[0], size);

	for (size_t i = 1; i < t->nhosts; i++)
		level = slower(level, devices_level(&t->hosts[i], size));
	return level;
}

/* The GPUs group by group, "0,2,1,3"; NULL where the groups are not alike. */
static char *order_of(const struct gf_nvlinked *g, size_t n)
{
	GF_RELEASED(gf_text_release) struct gf_text order = {0};
	size_t i, k, size, first = 0;

	for (i = 0; i < n; i++) {
		if (g[i].group != i)
			continue;
		for (k = i, size = 0; k < n; k++)
			if (g[k].group == i) {
				gf_text_addf(&order, "%s%zu", order.length ? "," : "", k);
				size++;
			}
		first = i == 0 ? size : first;
		if (size != first)
			return NULL;
	}
	return gf_text_take(&order);
}

/* g may be NULL. */
static void say_scattered(struct gf_text *remarks, const struct gf_nvlinked *g, size_t n)
{
	bool xgmi = g && strcmp(g[0].link, "xgmi") == 0;
	GF_FREED char *order = g ? order_of(g, n) : NULL;

	gf_text_addf(remarks,
		     "%s does not connect the GPUs in equal groups of neighbours: described as if "
		     "over PCI Express",
		     xgmi ? "xGMI" : "NVLink");
	if (order)
		gf_text_addf(remarks, "; %s_VISIBLE_DEVICES=%s makes neighbours of them",
			     xgmi ? "HIP" : "CUDA", order);
	gf_text_addf(remarks, "\n");
}

void gf_levels_linked(struct gf_topology *t, const struct gf_nvlinked *g, size_t n,
		      struct gf_text *remarks)
{
	size_t size = size_of(g, n), per_host = t->hosts[0].ndevices;

	if (size == 1 && is_any(g, n))
		say_scattered(remarks, t->nhosts == 1 ? g : NULL, n);
	for (size_t i = 1; i < t->nhosts; i++)
		if (t->hosts[i].ndevices != per_host)
			per_host = 0;
	if (size < n && (!per_host || (per_host % size && size % per_host))) {
		gf_text_addf(
			remarks,
			"the hosts have unequal numbers of GPUs: described as one flat level\n");
		gf_levels_append(t, network_level(t, 0), "net", n);
		return;
	}
	if (size > 1)
		gf_levels_append(t, level_of(g, n),
				 size == n || size == per_host ? "host" : g[0].link, size);
	if (size < per_host || n == 1)
		gf_levels_append(t, pcie_level(t, per_host), "host", per_host / size);
	if (size < per_host)
		size = per_host;
	if (size < n)
		gf_levels_append(t, network_level(t, 0), "net", n / size);
}

/* The size of the groups that all hosts have, and the slowest one's level, whose link is NULL if
 * that is 1. */
static size_t common_groups(const struct gf_topology *t, size_t size, struct gf_level *level,
			    bool *any)
{
	size_t i, common = 0;

	*level = (struct gf_level){0};
	*any = false;
	for (i = 0; i < t->nhosts; i++) {
		GF_FREED struct gf_nvlinked *g = of_host(&t->hosts[i], size);
		size_t group = size_of(g, size);

		*any |= is_any(g, size);
		common = common == 0 || common == group ? group : 1;
		if (common > 1 && !level->link)
			*level = level_of(g, size);
		else if (common > 1)
			*level = slower(*level, level_of(g, size));
	}
	if (common <= 1) {
		free(level->link);
		level->link = NULL;
	}
	return common;
}

/* The level "host" of `size` ranks on each host's first GPUs, and below it "nvlink" where all hosts
 * have alike groups of them smaller than that. A line in remark (NULL: not wanted) where NVLinks
 * cannot be said as levels. */
static void add_devices(struct gf_topology *t, size_t size, struct gf_text *remark)
{
	struct gf_level level;
	bool any;
	size_t group = common_groups(t, size, &level, &any);

	if (any && group == 1 && remark)
		say_scattered(remark, NULL, 0);
	if (group > 1)
		gf_levels_append(t, level, group == size ? "host" : level.link, group);
	if (group < size || size == 1)
		gf_levels_append(t, pcie_level(t, size), "host", size / group);
}

/* --- hosts and jobs --------------------------------------------------------- */

int gf_levels_of_host(struct gf_topology *t, enum gf_ranks_on ranks_on, struct gf_text *remark,
		      struct gf_error *err)
{
	const struct gf_host *host = &t->hosts[0];

	if (ranks_on == GF_RANKS_ON_GPU && host->ndevices == 0)
		return gf_error_set(err, -ENOTSUP, "no GPU or accelerator is visible on %s",
				    host->name);
	if (ranks_on != GF_RANKS_ON_CPU && host->ndevices > 0)
		add_devices(t, host->ndevices, remark);
	else
		gf_levels_append(t, assumed(&shm), "host", (size_t)host->cores);
	return 0;
}

/* Ranks r*size .. r*size + size-1 on host r, for all hosts? Then size. */
static int ranks_per_host(const struct gf_topology *t, const size_t *host_of, int ranks)
{
	int r, size = t->hosts[host_of[0]].ranks;

	if ((size_t)size * t->nhosts != (size_t)ranks)
		return 0;
	for (r = 0; r < ranks; r++)
		if (host_of[r] != host_of[r - r % size] ||
		    (r % size == 0 && r > 0 && host_of[r] == host_of[r - 1]))
			return 0;
	return size;
}

static int busiest(const struct gf_topology *t)
{
	int most = 0;

	for (size_t i = 0; i < t->nhosts; i++)
		if (t->hosts[i].ranks > most)
			most = t->hosts[i].ranks;
	return most;
}

/* Whether every rank can have an accelerator of its own. */
static int choose_devices(const struct gf_topology *t, enum gf_ranks_on ranks_on, int *on_devices,
			  struct gf_error *err)
{
	*on_devices = ranks_on != GF_RANKS_ON_CPU;
	for (size_t i = 0; i < t->nhosts && *on_devices; i++) {
		const struct gf_host *h = &t->hosts[i];

		if (h->ndevices >= (size_t)h->ranks)
			continue;
		if (ranks_on == GF_RANKS_ON_GPU)
			return gf_error_set(
				err, -ENOTSUP,
				"host %s: want a GPU or accelerator for each of %d ranks, got %zu",
				h->name, h->ranks, h->ndevices);
		*on_devices = 0;
	}
	return 0;
}

int gf_levels_of_job(struct gf_topology *t, const size_t *host_of, int ranks,
		     enum gf_ranks_on ranks_on, struct gf_text *remark, struct gf_error *err)
{
	int r, size, on_devices, rc;

	for (size_t i = 0; i < t->nhosts; i++)
		t->hosts[i].ranks = 0;
	for (r = 0; r < ranks; r++)
		t->hosts[host_of[r]].ranks++;
	rc = choose_devices(t, ranks_on, &on_devices, err);
	if (rc < 0)
		return rc;
	t->ranks = ranks;
	size = ranks_per_host(t, host_of, ranks);
	if (size == 0) {
		gf_levels_append(t, network_level(t, 1), "net", (size_t)ranks);
		gf_text_addf(remark,
			     "the ranks are not placed in equal, contiguous groups on %zu hosts "
			     "(up to %d on one): described as one flat level with a rank's share "
			     "of the network; start them with mpirun --map-by ppr:N:node for "
			     "levels host and net\n",
			     t->nhosts, busiest(t));
		return 0;
	}
	if ((size > 1 || t->nhosts == 1) && on_devices)
		add_devices(t, (size_t)size, remark);
	else if (size > 1 || t->nhosts == 1)
		gf_levels_append(t, assumed(&shm), "host", (size_t)size);
	if (t->nhosts > 1)
		gf_levels_append(t, network_level(t, 0), "net", t->nhosts);
	return 0;
}

void gf_levels_set_copy_rate(struct gf_topology *t, double bytes_per_s)
{
	for (size_t i = 0; i < t->nlevels; i++) {
		if (strcmp(t->levels[i].link, shm.link) != 0)
			continue;
		t->levels[i].bandwidth_bytes_per_s = bytes_per_s;
		t->levels[i].bandwidth_origin = GF_ORIGIN_MEASURED;
	}
}

int gf_levels_placed(struct gf_comm *c, const struct gf_level *levels, size_t nlevels,
		     struct gf_text *remark, struct gf_error *err)
{
	GF_FREED int *host = gf_xcalloc((size_t)c->ranks, sizeof(*host));
	int rc = gf_comm_allgather(c, &c->host, sizeof(c->host), host, err);
	const int inner = gf_levels_host(levels, nlevels);
	int rank, first;

	for (rank = 0; rc == 0 && inner && c->rank == 0 && rank < c->ranks; rank++) {
		first = rank - rank % inner;
		if (host[rank] == host[first])
			continue;
		gf_text_addf(remark,
			     "level \"%s\" is within a host, and "
			     "ranks %d and %d of one of its groups of %d are on two: steps take "
			     "longer than predicted: start the ranks by mpirun --map-by "
			     "ppr:%d:node, or plan for these (mpirun ... gf-topo | gf-plan)\n",
			     levels[0].name, first, rank, inner, inner);
		break;
	}
	return rc;
}

/* Cuts the text at the first `separator`; NULL if there is none. */
static char *cut(char *text, char separator)
{
	char *at = strchr(text, separator);

	if (!at)
		return NULL;
	*at = '\0';
	return at + 1;
}

static int is_word(const char *text)
{
	if (!*text)
		return 0;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("-_.", *text))
			return 0;
	return 1;
}

/* text is "NAME:SIZE@RATE,LATENCY[,LINK]" and is cut up. */
static int parse_level(char *text, struct gf_level *level, struct gf_error *err)
{
	char *size = cut(text, ':');
	char *rate = size ? cut(size, '@') : NULL;
	char *latency = rate ? cut(rate, ',') : NULL;
	char *link = latency ? cut(latency, ',') : NULL;
	long long count;
	int rc;

	if (!latency || !is_word(text) || (link && !is_word(link)))
		return gf_error_set(err, -EINVAL, "want NAME:SIZE@RATE,LATENCY[,LINK]");
	rc = gf_units_int(size, 1, GF_RANKS_MAX, &count, err);
	rc = rc ?: gf_units_rate(rate, &level->bandwidth_bytes_per_s, err);
	rc = rc ?: gf_units_time(latency, &level->latency_s, err);
	if (rc < 0)
		return rc;
	level->size = (size_t)count;
	level->nics = strchr(rate, 'x') ? strtoul(rate, NULL, 10) : 0;
	level->name = gf_xstrdup(text);
	level->link = gf_xstrdup(link ? link : text);
	return 0;
}

static int name_taken(const struct gf_topology *t)
{
	const struct gf_level *last = &t->levels[t->nlevels - 1];

	for (size_t i = 0; i + 1 < t->nlevels; i++)
		if (strcmp(t->levels[i].name, last->name) == 0)
			return 1;
	return 0;
}

static int parse_levels(char *spec, struct gf_topology *t, struct gf_error *err)
{
	char *saved = NULL, *word;

	for (word = strtok_r(spec, " \t\n", &saved); word; word = strtok_r(NULL, " \t\n", &saved)) {
		struct gf_level level = {0};
		GF_FREED char *whole = gf_xstrdup(word);
		int rc = parse_level(word, &level, err);

		if (rc == 0) {
			t->levels = gf_xreallocarray(t->levels, t->nlevels + 1, sizeof(*t->levels));
			t->levels[t->nlevels++] = level;
			if (name_taken(t))
				rc = gf_error_set(err, -EINVAL,
						  "want a name of its own, %s is taken",
						  level.name);
		}
		if (rc < 0) {
			gf_error_prefix(err, "level \"%s\"", whole);
			return rc;
		}
	}
	if (t->nlevels == 0)
		return gf_error_set(err, -EINVAL,
				    "want NAME:SIZE@RATE,LATENCY[,LINK], got nothing");
	t->ranks = gf_levels_ranks(t->levels, t->nlevels);
	if (t->ranks == 0)
		return gf_error_set(err, -EINVAL, "want at most %d ranks in all levels together",
				    GF_RANKS_MAX);
	return 0;
}

int gf_levels_synthetic(const char *spec, struct gf_topology *t, struct gf_error *err)
{
	struct gf_topology made = {0};
	GF_FREED char *copy = gf_xstrdup(spec);
	int rc = parse_levels(copy, &made, err);

	if (rc < 0) {
		gf_levels_free(made.levels, made.nlevels);
		return rc;
	}
	t->levels = made.levels;
	t->nlevels = made.nlevels;
	t->ranks = made.ranks;
	return 0;
}
