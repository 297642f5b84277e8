/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processors, memory and accelerators of this machine by hwloc, or of a machine that lstopo saved:
 * both as hwloc's XML. Network interfaces come from sysfs, which knows their rates; of a saved
 * machine, where there is no sysfs, they come from here.
 */
#include "discovery/discovery.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <stdio.h>
#include <string.h>

#include "base/allowance.h"
#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "discovery/find_levels.h"
#include "discovery/format.h"
#include "discovery/markup.h"

/*
 * hwloc's XML, what lstopo --of xml writes of a machine: formats 1 to 3.
 *
 *	<topology version="2.0">
 *	  <object type="Machine" allowed_cpuset="0x3" nodeset="0x1">
 *	    <object type="NUMANode" os_index="0" local_memory="17179869184"/>
 *	    <object type="Core" cpuset="0x3"> <object type="PU" os_index="0"/>
 *	    <object type="Bridge"> <object type="PCIDev" pci_busid pci_type>
 *	      <object type="OSDev" name="mlx5_0" osdev_type="3">
 *	  <distances2 name="NVLinkBandwidth">: see add_links
 *
 * The memory of a GPU (a NUMA node of subtype GPUMemory) is not the host's.
 */
/* Of format 3, where a device may be of several kinds. */
enum { NETWORK = 1 << 4, FABRIC = 1 << 5 };

/* More than Linux serves. A set has 11 bytes for 32 processors. */
enum { NODES_MAX = 4096, SET_BYTES = 4096 };

struct reading {
	const char *path;
	unsigned long format;
	const struct gf_discover_config *config;
	struct gf_host *host;
	struct gf_error *err;
	const char *processors, *memory; /* sets that a program may use */
	unsigned long *nodes;            /* of the host, by os_index */
	size_t nnodes, capacity, nbridges;
	const char *asked; /* the nodeset of the last answer */
	int answer;
};

/* Where an object is: what the objects around it say. */
struct around {
	const char *nodeset;       /* or NULL */
	const char *bridges;       /* a place in the PCI tree, or NULL */
	char address[GF_PCI_TEXT]; /* of the PCI function; "": none */
};

/* Is it in a set, "0x0000ffff,0xffffffff", the highest 32 first, or after "0xf...f" without end?
 * NULL, where a file says nothing: yes. */
static bool has(const char *set, unsigned long bit)
{
	const char *at = set ? set + strlen(set) : NULL;
	unsigned long word;

	if (set && at - set > SET_BYTES)
		return true;
	for (word = 0; at && at > set && word <= bit / 32; word++)
		while (at > set && *--at != ',')
			;
	if (!set || word <= bit / 32)
		return !set || strncmp(set, "0xf...f", 7) == 0;
	return strncmp(at, "0xf...f", 7) == 0 ||
	       (strtoul(at + (*at == ','), NULL, 16) >> bit % 32 & 1);
}

static bool is(const struct gf_markup *e, const char *type)
{
	const char *own = gf_markup_get(e, "type");

	return own && strcmp(own, type) == 0;
}

/* The value of an object's fact; NULL: it has none of that name. */
static const char *info_of(const struct gf_markup *e, const char *name)
{
	const char *own;

	for (size_t i = 0; i < e->nchildren; i++) {
		own = gf_markup_get(e->children[i], "name");
		if (strcmp(e->children[i]->name, "info") == 0 && own && strcmp(own, name) == 0)
			return gf_markup_get(e->children[i], "value");
	}
	return NULL;
}

/* Format 1 has it among the other facts. */
static bool is_subtype(const struct gf_markup *e, const char *subtype)
{
	const char *own = gf_markup_get(e, "subtype");

	own = own ? own : info_of(e, "Type");
	return own && strcmp(own, subtype) == 0;
}

static unsigned long number(const struct gf_markup *e, const char *name)
{
	const char *text = gf_markup_get(e, name);

	return text ? strtoul(text, NULL, 10) : 0;
}

/* Processors and memory; how many of both there are in it. */
static int count(struct reading *r, const struct gf_markup *e)
{
	struct gf_host *h = r->host;
	unsigned long index = number(e, "os_index");
	bool node = is(e, "NUMANode");
	bool others = node && (is_subtype(e, "GPUMemory") || !has(r->memory, index) ||
			       r->nnodes == NODES_MAX);
	int parts = 0;

	if (!others)
		h->memory_bytes += number(e, "local_memory");
	if (node && !others) {
		*gf_array_push(&r->nodes, &r->nnodes, &r->capacity) = index;
		parts++;
	}
	if (is(e, "PU") && has(r->processors, index)) {
		h->threads++;
		parts++;
	}
	for (size_t i = 0; i < e->nchildren; i++)
		if (strcmp(e->children[i]->name, "object") == 0)
			parts += count(r, e->children[i]);
	h->cores += parts && is(e, "Core");
	h->sockets += parts && (is(e, "Package") || is(e, "Socket"));
	return parts;
}

/* The one node of the host that is near; -1: none, or several. */
static int numa_of(struct reading *r, const struct around *at)
{
	size_t i, near = 0;

	if (at->nodeset && r->asked == at->nodeset)
		return r->answer;
	r->asked = at->nodeset;
	for (i = 0; i < r->nnodes && near < 2; i++)
		if (has(at->nodeset, r->nodes[i]) && near++ == 0)
			r->answer = (int)r->nodes[i];
	if (near != 1)
		r->answer = -1;
	return r->answer;
}

static void add_device(struct reading *r, const struct gf_markup *e, const struct around *at)
{
	const char *text = gf_markup_get(e, "pci_type");
	const char *speed = gf_markup_get(e, "pci_link_speed");
	const char *maker = info_of(e, "PCIVendor");
	const char *model = info_of(e, "PCIDevice");
	double rate = speed ? strtod(speed, NULL) * 1e9 : 0;
	unsigned class, vendor, device;
	const char *type;
	struct gf_device *d;

	if (!text || sscanf(text, "%4x [%4x:%4x]", &class, &vendor, &device) != 3)
		return;
	type = gf_discover_device_type(vendor, device, class, rate > 0);
	if (!type)
		return;
	d = gf_discover_add_device(r->host, type,
				   maker && model ? gf_xasprintf("%s %s", maker, model)
						  : gf_xasprintf("%04x:%04x", vendor, device),
				   at->address);
	d->numa = numa_of(r, at);
	gf_discover_report(rate < 1e15 ? rate : 0, &d->bandwidth_bytes_per_s, &d->bandwidth_origin);
}

/* Up if one of its ports is active (4); down if none is. */
static const char *state_of(const struct gf_markup *e)
{
	const char *state = "";
	char name[32];
	int port;

	for (port = 1; state && port < 256; port++) {
		snprintf(name, sizeof(name), "Port%dState", port);
		state = info_of(e, name);
		if (state && strcmp(state, "4") == 0)
			return "up";
	}
	return port > 2 ? "down" : "unknown";
}

/* IP over InfiniBand has addresses of 20 bytes, Ethernet of 6. A port of a fabric that is active
 * without an LID is RoCE. */
static const char *link_of(const struct gf_markup *e, bool fabric)
{
	const char *address = info_of(e, "Address");
	const char *lid = info_of(e, "Port1LID");
	const char *state = info_of(e, "Port1State");

	if (!fabric)
		return address && strlen(address) == 20 * 3 - 1 ? "ipoib" : "ethernet";
	if (!lid)
		return gf_discover_rdma_link(gf_markup_get(e, "name"), "roce");
	return strcmp(lid, "0x0") == 0 && state && strcmp(state, "4") == 0 ? "roce" : "infiniband";
}

static void add_nic(struct reading *r, const struct gf_markup *e, const struct around *at)
{
	/* by number up to format 2 */
	static const unsigned long old[] = {0, 0, NETWORK, NETWORK | FABRIC};
	const char *name = gf_markup_get(e, "name");
	unsigned long kind = number(e, "osdev_type");
	struct gf_nic *n;

	if (r->format < 3)
		kind = kind < GF_ARRAY_LENGTH(old) ? old[kind] : 0;
	if (!name || !(kind & (NETWORK | FABRIC)) ||
	    /* a second name of an Ethernet interface */
	    strncmp(name, "usnic_", 6) == 0)
		return;
	n = gf_discover_add_nic(r->host, gf_xstrdup(name), link_of(e, kind & FABRIC), state_of(e));
	n->numa = numa_of(r, at);
	n->pci = *at->address ? gf_xstrdup(at->address) : NULL;
}

/* A PCI function's "0000:65:00.0"; false: it has no address. */
static bool address_of(const struct gf_markup *e, char to[GF_PCI_TEXT])
{
	const char *text = gf_markup_get(e, "pci_busid");
	unsigned domain, bus, slot, function;

	if (!text || sscanf(text, "%x:%2x:%2x.%1x", &domain, &bus, &slot, &function) != 4)
		return false;
	snprintf(to, GF_PCI_TEXT, "%04x:%02x:%02x.%x", domain, bus, slot, function);
	return true;
}

/* Devices and interfaces. */
static void look(struct reading *r, const struct gf_markup *e, struct around at)
{
	const char *nodes = gf_markup_get(e, "nodeset");
	GF_FREED char *bridges = NULL;

	at.nodeset = nodes ? nodes : at.nodeset;
	if (is(e, "Bridge")) {
		bridges = gf_xasprintf("%s%zu/", at.bridges ? at.bridges : "", r->nbridges++);
		at.bridges = bridges;
	} else if (is(e, "PCIDev") && address_of(e, at.address)) {
		add_device(r, e, &at);
		if (at.bridges)
			gf_pci_tree_put(r->config->tree, at.address,
					gf_xasprintf("%s%s", at.bridges, at.address));
	} else if (is(e, "OSDev") && !r->config->sysfs) {
		add_nic(r, e, &at);
	}
	for (size_t i = 0; i < e->nchildren; i++)
		if (strcmp(e->children[i]->name, "object") == 0)
			look(r, e->children[i], at);
}

/*
 * The links between GPUs in hwloc's XML: matrices of MB/s between objects that are named by their
 * gp_index, or by type and gp_index.
 *
 *	<distances2 type="OSDev" nbobjs="2" name="NVLinkBandwidth"
 *		indexing="gp"> <indexes>37 40</indexes>
 *		<u64values>1000000 38000 38000 1000000</u64values>
 *	<distances2hetero ...> <indexes>OSDev:37 PCIDev:40</indexes> ...
 */

/* Of a matrix; hosts have some tens of GPUs and switches. */
enum { OBJECTS = 128 };

/* The object of an index, and the PCI function that it is or is below. */
static const struct gf_markup *find(const struct gf_markup *e, unsigned long index,
				    const struct gf_markup **pci)
{
	const struct gf_markup *found = NULL, *above = *pci;
	const char *own = gf_markup_get(e, "gp_index");

	if (gf_markup_get(e, "pci_type"))
		*pci = e;
	if (own && strtoul(own, NULL, 10) == index)
		return e;
	for (size_t i = 0; i < e->nchildren && !found; i++)
		found = find(e->children[i], index, pci);
	if (!found)
		*pci = above;
	return found;
}

/* The next number of a text, after a type and a colon or alone. */
static bool next(const char **text, unsigned long *number)
{
	size_t length;
	const char *colon;

	if (!*text)
		return false;
	*text += strspn(*text, " \t\r\n");
	length = strcspn(*text, " \t\r\n");
	colon = memchr(*text, ':', length);
	*number = strtoul(colon ? colon + 1 : *text, NULL, 10);
	*text += length;
	return length > 0;
}

static void add_link(struct gf_host *host, const struct gf_device *a, const struct gf_device *b,
		     enum gf_path path, unsigned long mb_per_s)
{
	host->links = gf_xreallocarray(host->links, host->nlinks + 1, sizeof(*host->links));
	host->links[host->nlinks++] = (struct gf_device_link){
		.from = gf_xstrdup(a->pci),
		.to = gf_xstrdup(b->pci),
		.path = path,
		.bandwidth_bytes_per_s = (double)mb_per_s * 1e6,
		.bandwidth_origin = GF_ORIGIN_REPORTED,
	};
}

/* Direct links have a rate each; those to switches add up, and lead to every GPU that has some. A
 * text with too few values says nothing. */
static void add_matrix(const struct gf_markup *root, const char *indexes, const char *values,
		       enum gf_path direct, struct gf_host *host)
{
	struct gf_device *at[OBJECTS];
	bool is_switch[OBJECTS];
	unsigned long *rates, up[OBJECTS] = {0}, number, rate;
	const struct gf_markup *o, *pci;
	char address[GF_PCI_TEXT];
	size_t n, i, k;

	for (n = 0; n < OBJECTS && next(&indexes, &number); n++) {
		pci = NULL;
		o = find(root, number, &pci);
		is_switch[n] = o && is_subtype(o, "NVSwitch");
		at[n] = pci && address_of(pci, address) ? gf_discover_find_device(host, address)
							: NULL;
	}
	rates = gf_xcalloc(n * n + 1, sizeof(*rates));
	for (i = 0; i < n * n && next(&values, &rates[i]); i++)
		if (is_switch[i % n])
			up[i / n] += rates[i];
	for (i = i < n * n ? n : 0; i < n; i++)
		for (k = i + 1; k < n; k++) {
			if (!at[i] || !at[k] || at[i] == at[k])
				continue;
			rate = up[i] < up[k] ? up[i] : up[k];
			if (rate)
				add_link(host, at[i], at[k], GF_PATH_NVSWITCH, rate);
			else if (rates[i * n + k])
				add_link(host, at[i], at[k], direct, rates[i * n + k]);
		}
	free(rates);
}

/* The texts of all children of that name. */
static struct gf_text text_of(const struct gf_markup *e, const char *name)
{
	struct gf_text t = {0};
	const char *text;

	for (size_t i = 0; i < e->nchildren; i++) {
		text = gf_markup_get(e->children[i], "");
		if (strcmp(e->children[i]->name, name) == 0 && text)
			gf_text_addf(&t, "%s ", text);
	}
	return t;
}

/* Adds the links of the file's matrices of NVLinks and xGMI links. */
static void add_links(const struct gf_markup *root, struct gf_host *host)
{
	static const struct {
		const char *name;
		enum gf_path direct;
	} kinds[] = {{"NVLinkBandwidth", GF_PATH_NVLINK}, {"XGMIBandwidth", GF_PATH_XGMI}};

	for (size_t k = 0; k < GF_ARRAY_LENGTH(kinds); k++)
		for (size_t i = 0; i < root->nchildren; i++) {
			const struct gf_markup *c = root->children[i];
			const char *name = gf_markup_get(c, "name");
			GF_RELEASED(gf_text_release) struct gf_text indexes = {0}, values = {0};

			if (strncmp(c->name, "distances2", 10) != 0 || !name ||
			    strcmp(name, kinds[k].name) != 0)
				continue;
			indexes = text_of(c, "indexes");
			values = text_of(c, "u64values");
			add_matrix(root, indexes.data, values.data, kinds[k].direct, host);
			break;
		}
}

static int describe(struct reading *r, const struct gf_markup *root,
		    const struct gf_markup *machine)
{
	struct gf_host *host = r->host;
	const char *name;

	r->processors = gf_markup_get(machine, "allowed_cpuset");
	r->memory = gf_markup_get(machine, "allowed_nodeset");
	count(r, machine);
	if (host->threads == 0)
		return gf_error_set(r->err, -EINVAL,
				    "%s: want a machine with processors (PU), got none", r->path);
	if (r->nnodes == 0)
		*gf_array_push(&r->nodes, &r->nnodes, &r->capacity) = 0;
	host->numa_nodes = (int)r->nnodes;
	host->sockets += host->sockets == 0;
	/* Some virtual machines and old kernels hide the cores. */
	host->cores = host->cores ? host->cores : host->threads;
	name = info_of(machine, "HostName");
	name = name ? name : info_of(root, "HostName");
	if (r->config->hwloc_xml && name && *name)
		host->name = gf_xstrdup(name);
	look(r, machine, (struct around){0});
	if (r->config->hwloc_xml)
		add_links(root, host);
	return 0;
}

/* Format 1 has no version. */
static int check_format(struct reading *r, const struct gf_markup *root)
{
	const char *version = gf_markup_get(root, "version");

	r->format = version ? strtoul(version, NULL, 10) : 1;
	if (strcmp(root->name, "topology") != 0)
		return gf_error_set(r->err, -EINVAL, "%s:%zu: want the element topology, got %.40s",
				    r->path, root->line, root->name);
	if (r->format < 1 || r->format > 3)
		return gf_error_set(r->err, -EINVAL,
				    "%s: want XML of hwloc 1 to 3, got format %.20s (lstopo "
				    "--export-xml-flags v2 writes an earlier one)",
				    r->path, version);
	return 0;
}

/* Adds to a host that probers fill what hwloc's XML says of a machine: processors, memory and
 * accelerators; without a sysfs network interfaces, too; of a saved machine its name, and links.
 * The config's tree gets the places of PCI functions. -EINVAL names the path, and the line where
 * there is one. */
static int read_xml(const char *xml, const char *path, const struct gf_discover_config *config,
		    struct gf_host *host, struct gf_error *err)
{
	struct reading r = {.path = path, .config = config};
	struct gf_markup *root = NULL, *machine;
	size_t i = 0;
	int rc = gf_xml_parse(xml, path, &root, err);

	r.host = host;
	r.err = err;
	rc = rc ?: check_format(&r, root);
	while (rc == 0 && i < root->nchildren && strcmp(root->children[i]->name, "object") != 0)
		i++;
	if (rc == 0) {
		machine = i < root->nchildren ? root->children[i] : root;
		rc = describe(&r, root, machine);
	}
	free(r.nodes);
	gf_markup_free(root);
	return rc;
}

/* --- this machine, and the format ------------------------------------------ */

static int load(hwloc_topology_t topology, struct gf_error *err)
{
	/* Plugins that would start a display or an OpenCL runtime to find what PCI shows anyway; an
	 * absent plugin cannot be refused: no check. */
	static const char *const unwanted[] = {"gl", "opencl"};

	for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
		hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      unwanted[i]);
	hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	if (hwloc_topology_load(topology) < 0)
		return gf_error_set(err, -EIO, "hwloc cannot load it");
	return 0;
}

/* A container or a job may have less than the machine. */
static void limit(struct gf_host *host)
{
	struct gf_allowance limits[GF_ALLOWANCES];
	double memory = gf_allowance_memory_limit("");
	size_t i = gf_allowance_processors("", limits);

	if (memory < (double)host->memory_bytes)
		host->memory_bytes = (size_t)memory;
	while (i-- > 0) {
		double most = limits[i].processors > 1 ? limits[i].processors : 1;

		if (host->threads > most)
			host->threads = (int)most;
		if (host->cores > most)
			host->cores = (int)most;
	}
}

static int probe_this(const struct gf_discover_config *config, struct gf_host *host,
		      struct gf_error *err)
{
	hwloc_topology_t topology;
	char *xml;
	int rc, size;

	if (hwloc_topology_init(&topology) < 0)
		return gf_error_set(err, -ENOMEM, "cannot start hwloc");
	rc = load(topology, err);
	/* libpciaccess keeps its name table for the life of the process, but hwloc unloads it with
	 * its plugin: pinned, the table is not lost and read again by every probe. */
	dlopen("libpciaccess.so.0", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (rc == 0 && hwloc_topology_export_xmlbuffer(topology, &xml, &size, 0) < 0)
		rc = gf_error_set(err, -EIO, "hwloc cannot describe it");
	else if (rc == 0) {
		rc = read_xml(xml, "hwloc's XML", config, host, err);
		limit(host);
		hwloc_free_xmlbuffer(topology, xml);
	}
	hwloc_topology_destroy(topology);
	return rc;
}

int gf_discover_hwloc(const struct gf_discover_config *config, struct gf_host *host,
		      struct gf_error *err)
{
	GF_FREED char *read = NULL;
	size_t size;
	int rc = 0;

	if (!config->hwloc_xml) {
		rc = probe_this(config, host, err);
		if (rc)
			gf_error_prefix(err, "this machine");
		return rc;
	}
	if (!config->hwloc_text)
		rc = gf_file_read(config->hwloc_xml, &read, &size, err);
	return rc
		       ?: read_xml(read ? read : config->hwloc_text, config->hwloc_xml, config,
				   host, err);
}

static int recognise(const char *text)
{
	return strstr(text, "<topology") != NULL && strstr(text, "<object ") != NULL;
}

static int read_hwloc(const struct gf_topology_file *in, struct gf_topology *t,
		      struct gf_text *remarks, struct gf_error *err)
{
	struct gf_discover_config config = {
		.hwloc_xml = in->path,
		.hwloc_text = in->text,
	};
	int rc;

	t->hosts = gf_xcalloc(1, sizeof(*t->hosts));
	rc = gf_discover_host(&config, &t->hosts[0], err);
	if (rc < 0)
		return rc;
	t->nhosts = 1;
	if (strstr(in->text, "\"XeLinkBandwidth\"") ||
	    (t->hosts[0].nlinks == 0 &&
	     (strstr(in->text, "\"NVLinkBandwidth\"") || strstr(in->text, "\"XGMIBandwidth\""))))
		gf_imported_leave(in->imported, "matrices of links between other devices", 0);
	t->source = gf_xstrdup("hwloc");
	return gf_levels_of_host(t, GF_RANKS_ON_AUTO, remarks, err);
}

/* MANUAL
 * XML of one machine by lstopo (hwloc 1 to 3), as with
 * .Fl -machine Cm hwloc= .
 * The bandwidths of NVLinks and xGMI links that it has make levels. */
const struct gf_topology_format gf_format_hwloc = {
	.name = "hwloc",
	.description = "XML of one machine (lstopo --of xml)",
	.place = 20,
	.recognise = recognise,
	.read = read_hwloc,
};
