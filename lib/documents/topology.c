/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/topology.h"

#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "json/record.h"
#include "documents/shared_records.h"

/* 2^24 ranks have at most 24 levels that are not of one. */
#define MOST_LEVELS 64

const char *const gf_origin_names[] = {"assumed", "reported", "measured", NULL};
const char *const gf_path_names[] = {"unknown", "nvlink", "xgmi", "nvswitch", "pix",
				     "pxb",     "phb",    "node", "sys",      NULL};

#define AT(member) offsetof(struct gf_level, member)
static const struct gf_field level_fields[] = {
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(size, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_RANKS_MAX},
	{GF_MEMBER(link, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(bandwidth_bytes_per_s, GF_FIELD_REAL, GF_REQUIRED), .low = GF_MIN_RATE,
	 .high = GF_MAX_RATE},
	{GF_MEMBER(bandwidth_origin, GF_FIELD_CHOICE, GF_DEFAULTED), .names = gf_origin_names},
	{GF_MEMBER(nics, GF_FIELD_SIZE, GF_OMITTED), .low = 1, .high = GF_RANKS_MAX},
	{GF_MEMBER(latency_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(latency_origin, GF_FIELD_CHOICE, GF_DEFAULTED), .names = gf_origin_names},
	{NULL},
};
#undef AT

const struct gf_record gf_level_record = {
	GF_RECORD(struct gf_level, level_fields),
};

#define AT(member) offsetof(struct gf_device, member)
static const struct gf_field device_fields[] = {
	{GF_MEMBER(type, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(pci, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(numa, GF_FIELD_INT, GF_OMITTED), .low = -1, .high = INT_MAX, .absent = -1},
	{GF_MEMBER(memory_bytes, GF_FIELD_SIZE, GF_OMITTED), .high = GF_MAX_SIZE},
	{GF_MEMBER(bandwidth_bytes_per_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_RATE},
	{GF_MEMBER(bandwidth_origin, GF_FIELD_CHOICE, GF_FOLLOWS), .names = gf_origin_names},
	{GF_MEMBER(nic, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(nic_path, GF_FIELD_CHOICE, GF_FOLLOWS), .names = gf_path_names},
	{NULL},
};
#undef AT

static const struct gf_record device_record = {
	GF_RECORD(struct gf_device, device_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_device_link, member)
static const struct gf_field link_fields[] = {
	{GF_MEMBER(from, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(to, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(path, GF_FIELD_CHOICE, GF_REQUIRED), .names = gf_path_names},
	{GF_MEMBER(count, GF_FIELD_INT, GF_OMITTED), .high = INT_MAX},
	{GF_MEMBER(bandwidth_bytes_per_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_RATE},
	{GF_MEMBER(bandwidth_origin, GF_FIELD_CHOICE, GF_FOLLOWS), .names = gf_origin_names},
	{NULL},
};
#undef AT

static const struct gf_record link_record = {
	GF_RECORD(struct gf_device_link, link_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_nic, member)
static const struct gf_field nic_fields[] = {
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(link, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(state, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(pci, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(numa, GF_FIELD_INT, GF_OMITTED), .low = -1, .high = INT_MAX, .absent = -1},
	{GF_MEMBER(bandwidth_bytes_per_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_RATE},
	{GF_MEMBER(bandwidth_origin, GF_FIELD_CHOICE, GF_FOLLOWS), .names = gf_origin_names},
	{NULL},
};
#undef AT

static const struct gf_record nic_record = {
	GF_RECORD(struct gf_nic, nic_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_host, member)
static const struct gf_field host_fields[] = {
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(ranks, GF_FIELD_INT, GF_OMITTED), .high = INT_MAX},
	{GF_MEMBER(sockets, GF_FIELD_INT, GF_OMITTED), .high = INT_MAX},
	{GF_MEMBER(numa_nodes, GF_FIELD_INT, GF_OMITTED), .high = INT_MAX},
	{GF_MEMBER(cores, GF_FIELD_INT, GF_OMITTED), .high = INT_MAX},
	{GF_MEMBER(threads, GF_FIELD_INT, GF_OMITTED), .high = INT_MAX},
	{GF_MEMBER(memory_bytes, GF_FIELD_SIZE, GF_OMITTED), .high = GF_MAX_SIZE},
	{GF_MEMBERS(devices, GF_FIELD_LIST, GF_DEFAULTED), .record = &device_record},
	{GF_MEMBERS(links, GF_FIELD_LIST, GF_OMITTED), .record = &link_record},
	{GF_MEMBERS(nics, GF_FIELD_LIST, GF_DEFAULTED), .record = &nic_record},
	{NULL},
};
#undef AT

static const struct gf_record host_record = {
	GF_RECORD(struct gf_host, host_fields),
};

int gf_levels_check(const struct gf_json_at *at, const struct gf_level *levels, size_t count,
		    struct gf_error *err)
{
	if (count > MOST_LEVELS)
		return gf_json_refuse(at, "levels", err, "want at most %d levels, got %zu",
				      MOST_LEVELS, count);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(levels[i].name, levels[k].name) == 0)
				return gf_json_refuse(at, gf_json_path("levels/%zu/name", i).text,
						      err,
						      "want a name of its own, got \"%.40s\" again",
						      levels[i].name);
	if (count && !gf_levels_ranks(levels, count))
		return gf_json_refuse(at, "levels", err,
				      "want sizes whose product is at most %d, got more",
				      GF_RANKS_MAX);
	return 0;
}

static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_topology *t = item;
	int rc = gf_levels_check(at, t->levels, t->nlevels, err);

	if (rc)
		return rc;
	if (t->ranks && t->ranks != gf_levels_ranks(t->levels, t->nlevels))
		return gf_json_refuse(at, "ranks", err,
				      "want %d, the product of the level sizes, got %d",
				      gf_levels_ranks(t->levels, t->nlevels), t->ranks);
	return 0;
}

#define AT(member) offsetof(struct gf_topology, member)
static const struct gf_field topology_fields[] = {
	{GF_MEMBER(producer, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(source, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(origin, GF_FIELD_RAW, GF_OMITTED)},
	{GF_MEMBER(ranks, GF_FIELD_INT, GF_OMITTED), .low = 1, .high = GF_RANKS_MAX},
	{GF_MEMBERS(levels, GF_FIELD_LIST, GF_REQUIRED), .record = &gf_level_record,
	 .schema = "\"maxItems\": 64"},
	{GF_MEMBERS(hosts, GF_FIELD_LIST, GF_OMITTED), .record = &host_record},
	{NULL},
};

static const struct gf_record topology_record = {
	GF_RECORD(struct gf_topology, topology_fields),
	.finish = finish,
};

const struct gf_document_format gf_document_topology = {
	.name = "gf-topology",
	.description = "how ranks are grouped and how fast their links are",
	.record = &topology_record,
};

int gf_topology_read(const struct gf_json *root, const char *file, struct gf_topology *t,
		     struct gf_error *err)
{
	return gf_document_read(root, file, &gf_document_topology, t, err);
}

int gf_topology_check(const struct gf_topology *t, struct gf_error *err)
{
	return gf_document_check(&gf_document_topology, t, err);
}

char *gf_topology_write(const struct gf_topology *t)
{
	return gf_document_write(&gf_document_topology, t);
}

void gf_topology_release(struct gf_topology *t)
{
	gf_record_release(&topology_record, t);
}

struct gf_level *gf_levels_copy(const struct gf_level *levels, size_t count)
{
	return gf_list_copy(&gf_level_record, levels, count);
}

void gf_levels_free(struct gf_level *levels, size_t count)
{
	gf_list_free(&gf_level_record, levels, count);
}

int gf_levels_ranks(const struct gf_level *levels, size_t count)
{
	size_t product = 1, i;

	for (i = 0; i < count; i++) {
		product *= levels[i].size;
		if (!product || product > GF_RANKS_MAX)
			return 0;
	}
	return (int)product;
}

/* Links that end at a host's edge. */
bool gf_level_is_within_host(const struct gf_level *level)
{
	static const char *const links[] = {"shm", "pcie", "c2c", "nvlink", "xgmi"};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(links); i++)
		if (strcmp(level->link, links[i]) == 0)
			return true;
	return false;
}

int gf_levels_host(const struct gf_level *levels, size_t count)
{
	size_t i = 0;

	while (i < count && gf_level_is_within_host(&levels[i]))
		i++;
	return i ? gf_levels_ranks(levels, i) : 0;
}
