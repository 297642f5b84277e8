/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `nvidia-smi topo -m` prints: how each GPU and network interface of one machine reaches the
 * others.
 *
 *		GPU0	GPU1	NIC0	CPU Affinity	NUMA Affinity
 *	GPU0	 X 	NV12	PXB	0-31		0
 *	GPU1	NV12	 X 	PXB	0-31		0
 *	NIC0	PXB	PXB	 X
 *	NIC Legend:
 *	  NIC0: mlx5_0
 *
 * NV# are bonded NVLinks. It does not say what GPUs there are, so that the rate of an NVLink is
 * guessed from how many a GPU has.
 */
#include <string.h>
#include <strings.h>

#include "base/heap.h"
#include "base/log_lines.h"
#include "discovery/format.h"
#include "discovery/find_levels.h"
#include "discovery/discovery.h"

/* Of columns; and the most NVLinks that a GPU has had. */
enum { WORDS = 300, LINKS_MAX = 18, LINKS_BEFORE_HOPPER = 12 };

struct reading {
	const struct gf_topology_file *in;
	struct gf_host *host;
	struct gf_error *err;
	size_t line, ngpus, ncolumns, nrows; /* GPUs are the first columns */
	size_t header;                       /* its line; 0: not found */
	char *names[WORDS];
	int links[WORDS]; /* per GPU, to all others */
	int most[WORDS];  /* to one of them */
	struct gf_nvlinked *linked;
	enum gf_path *paths; /* from GPUs to interfaces */
};

static int recognise(const char *text)
{
	const char *header = strstr(text, "GPU0");

	return header && strstr(header, "CPU Affinity") != NULL &&
	       (strstr(header, " X") != NULL || strstr(header, "\tX") != NULL);
}

/* It lists adapters for RDMA alone. */
static void name_nic(struct gf_nic *nic, const char *name)
{
	free(nic->name);
	free(nic->link);
	nic->name = gf_xstrdup(name);
	nic->link = gf_xstrdup(gf_discover_rdma_link(name, "infiniband"));
}

static int read_header(struct reading *r, char **words, size_t n)
{
	size_t i;

	for (i = 0; i < n && strcmp(words[i], "CPU") != 0; i++) {
		r->names[i] = gf_xstrdup(words[i]);
		r->ncolumns++;
		if (strncmp(words[i], "GPU", 3) == 0 && i == r->ngpus) {
			r->ngpus++;
			gf_discover_add_device(r->host, "gpu", gf_xstrdup(words[i]), NULL);
			continue;
		}
		name_nic(gf_discover_add_nic(r->host, NULL, NULL, "unknown"), words[i]);
	}
	r->paths = gf_xcalloc(r->ngpus * r->host->nnics + 1, sizeof(*r->paths));
	r->header = r->line;
	r->linked = gf_nvlinked_new(r->ngpus);
	if (i == n)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: want the columns of nvidia-smi topo -m up to CPU "
				    "Affinity, got them cut",
				    r->in->path, r->line);
	return 0;
}

static enum gf_path path_of(const char *cell)
{
	enum gf_path p;

	for (p = GF_PATH_PIX; gf_path_names[p]; p++)
		if (strcasecmp(cell, gf_path_names[p]) == 0)
			return p;
	return GF_PATH_UNKNOWN;
}

static void read_cell(struct reading *r, size_t column, const char *cell)
{
	size_t row = r->nrows;
	enum gf_path path = path_of(cell);
	char *end;
	long links;

	if (strncmp(cell, "NV", 2) == 0 && column < r->ngpus) {
		links = strtol(cell + 2, &end, 10);
		if (end > cell + 2 && !*end && links > 0 && links < 100) {
			gf_nvlinked_join(r->linked, r->ngpus, row, column);
			r->links[row] += (int)links;
			if (links > r->most[row])
				r->most[row] = (int)links;
			return;
		}
	}
	if (path == GF_PATH_UNKNOWN && strcmp(cell, "X") != 0)
		gf_imported_leave(r->in->imported, "unknown ways", r->line);
	if (column >= r->ngpus)
		r->paths[row * r->host->nnics + column - r->ngpus] = path;
}

/* After the ways: the processors, the NUMA node. */
static int read_row(struct reading *r, char **words, size_t n)
{
	char *end;
	long numa;

	if (n < 1 + r->ncolumns)
		return gf_error_set(r->err, -EINVAL,
				    "%s:%zu: want %zu ways in the row of %.40s, got %zu",
				    r->in->path, r->line, r->ncolumns, words[0], n - 1);
	for (size_t i = 0; i < r->ncolumns && r->nrows < r->ngpus; i++)
		read_cell(r, i, words[1 + i]);
	if (r->nrows < r->ngpus && n > 2 + r->ncolumns) {
		numa = strtol(words[2 + r->ncolumns], &end, 10);
		if (!*end && numa >= 0 && numa < 1024)
			r->host->devices[r->nrows].numa = (int)numa;
	}
	r->nrows++;
	return 0;
}

/* "NIC0: mlx5_0", "X = Self"; false: the line is none of the legend. */
static bool read_legend(struct reading *r, char **words, size_t n)
{
	size_t i, length = strlen(words[0]);

	if (n != 2 || length < 2 || words[0][length - 1] != ':')
		return strcmp(words[n - 1], "Legend:") == 0 ||
		       (n > 1 && strcmp(words[1], "=") == 0);
	words[0][length - 1] = '\0';
	for (i = 0; i < r->host->nnics; i++)
		if (strcmp(r->names[r->ngpus + i], words[0]) == 0)
			name_nic(&r->host->nics[i], words[1]);
	return true;
}

static int read_line(struct reading *r, char *line)
{
	char *words[WORDS];
	size_t n = gf_log_words(line, words, WORDS);

	if (n == 0)
		return 0;
	if (!r->header && strcmp(words[0], "GPU0") == 0)
		return read_header(r, words, n);
	if (r->nrows < r->ncolumns && strcmp(words[0], r->names[r->nrows]) == 0)
		return read_row(r, words, n);
	if (!r->header || !read_legend(r, words, n))
		gf_imported_leave(r->in->imported, "lines that are none of its", r->line);
	return 0;
}

/* Links of more than a GPU has lead to a switch, which all share. */
static void count_rates(struct reading *r, struct gf_text *remarks)
{
	int links, most = 0;
	double rate;
	size_t i;

	for (i = 0; i < r->ngpus; i++) {
		links = r->links[i] > LINKS_MAX ? r->most[i] : r->links[i];
		r->linked[i].bytes_per_s = links;
		most = links > most ? links : most;
	}
	rate = gf_nvlink_rate(most > LINKS_BEFORE_HOPPER ? 90 : 80);
	for (i = 0; i < r->ngpus; i++)
		r->linked[i].bytes_per_s *= rate;
	if (most)
		gf_text_addf(remarks,
			     "%s: it does not say what GPUs these are: an NVLink counts for %.3g "
			     "GB/s; NCCL_TOPO_DUMP_FILE's file has rates\n",
			     r->in->path, rate / 1e9);
	for (i = 0; i < r->ngpus; i++)
		if (r->linked[i].bytes_per_s < most * rate)
			break;
	if (i < r->ngpus)
		gf_text_addf(remarks,
			     "%s: GPUs have unequal numbers of NVLinks: %s has %.0f of %d\n",
			     r->in->path, r->names[i], r->linked[i].bytes_per_s / rate, most);
}

static int read_matrix(const struct gf_topology_file *in, struct gf_topology *t,
		       struct gf_text *remarks, struct gf_error *err)
{
	static const char *const marks[] = {"GPU0", "NIC", NULL};
	struct reading r = {.in = in, .err = err};
	GF_RELEASED(gf_log_release) struct gf_log log = {.at = in->text, .marks = marks};
	char *line;
	int rc = 0;

	t->hosts = gf_xcalloc(1, sizeof(*t->hosts));
	t->nhosts = 1;
	r.host = &t->hosts[0];
	r.host->name = gf_discover_name_of_file(in->path);
	while (rc == 0 && (line = gf_log_next(&log))) {
		r.line = log.line;
		rc = read_line(&r, line);
	}
	if (rc == 0 && (!r.header || r.nrows < r.ngpus))
		rc = gf_error_set(err, -EINVAL,
				  "%s: want the matrix of nvidia-smi topo -m, got the rows of %zu "
				  "of %zu GPUs",
				  in->path, r.nrows, r.ngpus);
	if (rc == 0) {
		gf_near_by_paths(r.host, r.paths);
		count_rates(&r, remarks);
		gf_levels_linked(t, r.linked, r.ngpus, remarks);
		t->source = gf_xstrdup("nvidia-smi");
	}
	for (size_t i = 0; i < r.ncolumns; i++)
		free(r.names[i]);
	free(r.linked);
	free(r.paths);
	return rc;
}

/* MANUAL
 * what
 * .Dq nvidia-smi topo -m
 * prints: one machine's GPUs, with their NVLinks and the network interface near each.
 * It does not name the GPUs, so that the rate of an NVLink is assumed, with a warning. */
const struct gf_topology_format gf_format_matrix = {
	.name = "nvidia-smi",
	.description = "the matrix of nvidia-smi topo -m",
	.place = 50,
	.recognise = recognise,
	.read = read_matrix,
};
