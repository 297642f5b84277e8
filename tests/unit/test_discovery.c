/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "discovery/whole_job.h"
#include "discovery/find_levels.h"
#include "discovery/discovery.h"
#include "ranks.h"

static const char machine[] = "tests/data/hwloc/gpu-node.xml";

/* "name link state pci numa rate" of every interface, one per line */
static char *print_nics(const struct gf_host *h)
{
	struct gf_text t = {0};
	size_t i;

	for (i = 0; i < h->nnics; i++) {
		const struct gf_nic *n = &h->nics[i];

		gf_text_addf(&t, "%s %s %s %s %d %g\n", n->name, n->link, n->state,
			     n->pci ? n->pci : "-", n->numa, n->bandwidth_bytes_per_s);
	}
	return gf_text_take(&t);
}

static void test_nics(void)
{
	static const struct {
		const char *sysfs, *nics;
		/* what a level made of this host gets */
		const char *link;
		double rate;
		enum gf_origin origin;
	} cases[] = {
		{"tests/data/sysfs/virtio", "eth0 ethernet up 0000:00:03.0 -1 0\n", "ethernet",
		 1.25e9, GF_ORIGIN_ASSUMED},
		{"tests/data/sysfs/gpu-node",
		 "eno1 ethernet up 0000:04:00.0 0 1.25e+08\n"
		 "eno2 ethernet down 0000:04:00.1 0 0\n"
		 "ib0 ipoib up 0000:18:00.0 0 2.5e+10\n"
		 "mlx5_0:1 infiniband up 0000:18:00.0 0 2.5e+10\n"
		 "mlx5_1:1 infiniband up 0000:b4:00.0 1 2.5e+10\n"
		 "mlx5_2:1 roce down 0000:06:00.0 0 5e+09\n",
		 "infiniband", 5e10, GF_ORIGIN_REPORTED},
		/* a veth's 10 Gb/s is its driver's constant */
		{"tests/data/sysfs/container", "eth0 ethernet up - -1 0\n", "ethernet", 1.25e9,
		 GF_ORIGIN_ASSUMED},
		{"tests/data/sysfs/no-nic", "lo loopback unknown - -1 0\n", "loopback", 8e9,
		 GF_ORIGIN_ASSUMED},
		/* without sysfs a saved machine still names its interfaces */
		{NULL,
		 "eno1 ethernet unknown 0000:04:00.0 0 0\n"
		 "mlx5_0 infiniband unknown 0000:18:00.0 0 0\n"
		 "mlx5_1 infiniband unknown 0000:b4:00.0 1 0\n",
		 "infiniband", 12.5e9, GF_ORIGIN_ASSUMED},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_discover_config config = {.sysfs = cases[i].sysfs, .hwloc_xml = machine};
		struct gf_host host = {0};
		struct gf_error err = {""};
		struct gf_level level;
		char *nics;

		EXPECT(gf_discover_host(&config, &host, &err) == 0, "%s", err.text);
		nics = print_nics(&host);
		EXPECT_TEXT(nics, cases[i].nics);
		gf_levels_network_of(&host, &level);
		EXPECT_TEXT(level.link, cases[i].link);
		EXPECT_NEAR(level.bandwidth_bytes_per_s, cases[i].rate, 1e-12, "%s",
			    cases[i].sysfs);
		EXPECT(level.bandwidth_origin == cases[i].origin, "%s", cases[i].sysfs);
		EXPECT(level.latency_origin == GF_ORIGIN_ASSUMED && level.latency_s > 0, "%s",
		       cases[i].sysfs);
		free(level.link);
		free(nics);
		gf_discover_host_release(&host);
	}
}

static void test_machine(void)
{
	struct gf_discover_config config = {.sysfs = "tests/data/sysfs/gpu-node",
					    .hwloc_xml = machine};
	struct gf_host h = {0};
	struct gf_error err = {""};
	size_t i;

	EXPECT(gf_discover_host(&config, &h, &err) == 0, "%s", err.text);
	EXPECT_TEXT(h.name, "gpu-node");
	EXPECT(h.sockets == 2 && h.numa_nodes == 2 && h.cores == 8 && h.threads == 16,
	       "%d %d %d %d", h.sockets, h.numa_nodes, h.cores, h.threads);
	EXPECT(h.memory_bytes == (size_t)128 << 30, "%zu", h.memory_bytes);
	/* the console chip of the management board is no GPU */
	EXPECT(h.ndevices == 2, "%zu devices", h.ndevices);
	for (i = 0; i < h.ndevices; i++) {
		static const char *const pci[] = {"0000:17:00.0", "0000:b3:00.0"};

		EXPECT_TEXT(h.devices[i].type, "gpu");
		EXPECT_TEXT(h.devices[i].pci, pci[i]);
		EXPECT_TEXT(h.devices[i].name, "NVIDIA Corporation GA100 [A100 PCIe 80GB]");
		EXPECT(h.devices[i].numa == (int)i, "%d", h.devices[i].numa);
		/* 16 lanes of 16 GT/s, not the 2.5 GT/s it idles at */
		EXPECT_NEAR(h.devices[i].bandwidth_bytes_per_s, 16e9 * 128 / 130 / 8 * 16, 1e-12,
			    "gpu %zu", i);
	}
	gf_discover_host_release(&h);
}

static void test_refused(void)
{
	static const struct {
		const char *hwloc, *sysfs, *named;
	} files[] = {
		{"tests/data/absent.xml", NULL, "tests/data/absent.xml"},
		{"tests/unit/test_discovery.c", NULL, "tests/unit/test_discovery.c"},
		{machine, "tests/data/sysfs/absent", "tests/data/sysfs/absent: No such file"},
		{machine, "tests/unit/test_discovery.c",
		 "tests/unit/test_discovery.c: want a folder"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(files); i++) {
		struct gf_discover_config config = {
			.sysfs = files[i].sysfs,
			.hwloc_xml = files[i].hwloc,
		};
		struct gf_host host = {0};
		struct gf_error err = {""};

		EXPECT(gf_discover_host(&config, &host, &err) < 0, "%s", files[i].named);
		EXPECT(strstr(err.text, files[i].named) != NULL, "%s", err.text);
		EXPECT(host.name == NULL && host.nnics == 0, "output touched");
	}
}

/* What is left of hwloc's XML without the bytes from `at` on: a machine, or a reason in one line
 * that names the file. */
static size_t expect_survival(const char *xml, size_t size, size_t at, size_t dropped)
{
	struct gf_text t = {0};
	struct gf_discover_config config = {.hwloc_xml = "damaged.xml"};
	struct gf_host host = {0};
	struct gf_error err = {""};
	int rc;

	gf_text_add(&t, xml, at);
	gf_text_add(&t, xml + at + dropped, size - at - dropped);
	config.hwloc_text = t.data;
	rc = gf_discover_host(&config, &host, &err);
	EXPECT(rc == 0 || (rc == -EINVAL && !strchr(err.text, '\n') &&
			   strstr(err.text, "damaged.xml:")),
	       "without %zu bytes at %zu: %d, %s", dropped, at, rc, err.text);
	gf_discover_host_release(&host);
	gf_text_release(&t);
	return rc != 0;
}

static void test_damaged(void)
{
	char *xml, *at, *end;
	size_t size, files = 0, refused = 0;
	struct gf_error err = {""};

	EXPECT(gf_file_read(machine, &xml, &size, &err) == 0, "%s", err.text);
	for (at = xml; *at; at = end, files++) {
		end = at + strcspn(at, "\n");
		end += *end == '\n';
		refused += expect_survival(xml, size, (size_t)(at - xml), (size_t)(end - at));
	}
	for (at = xml; (at = strstr(at, "=\"")); at = end) {
		end = at + 2 + strcspn(at + 2, "\"") + 1;
		files++;
		while (at[-1] != ' ')
			at--;
		refused += expect_survival(xml, size, (size_t)(at - xml), (size_t)(end - at));
	}
	EXPECT(files > 300 && refused > 0 && refused < files, "%zu of %zu refused", refused, files);
	free(xml);
}

/* Of a few hundred bytes that stand for gigabytes. */
static void test_entities(void)
{
	struct gf_text t = {0};
	struct gf_discover_config config = {.hwloc_xml = "bomb.xml"};
	struct gf_host host = {0};
	struct gf_error err = {""};
	int i, k;

	gf_text_addf(&t, "<?xml version=\"1.0\"?>\n<!DOCTYPE topology [\n"
			 "<!ENTITY e0 \"lol\">\n");
	for (i = 1; i < 12; i++) {
		gf_text_addf(&t, "<!ENTITY e%d \"", i);
		for (k = 0; k < 10; k++)
			gf_text_addf(&t, "&e%d;", i - 1);
		gf_text_addf(&t, "\">\n");
	}
	gf_text_addf(&t, "]>\n<topology><object type=\"Machine\" name=\"&e11;\"/></topology>\n");
	config.hwloc_text = t.data;
	EXPECT(gf_discover_host(&config, &host, &err) == -EINVAL, "%s", err.text);
	EXPECT_TEXT(err.text, "bomb.xml:2: want XML without definitions "
			      "in its DOCTYPE, got some");
	gf_text_release(&t);
}

/* "numa nodes, memory in GiB, devices: pci numa nic path" */
static char *print_host(const struct gf_host *h)
{
	struct gf_text t = {0};
	size_t i;

	gf_text_addf(&t, "%d %d %d %d %.4g", h->sockets, h->numa_nodes, h->cores, h->threads,
		     (double)h->memory_bytes / 1073741824);
	for (i = 0; i < h->ndevices; i++)
		gf_text_addf(&t, "\n%s %d %s %s", h->devices[i].pci, h->devices[i].numa,
			     h->devices[i].nic ? h->devices[i].nic : "-",
			     gf_path_names[h->devices[i].nic_path]);
	return gf_text_take(&t);
}

#define MACHINE(version, inside)                                                                   \
	"<topology" version "><object type=\"Machine\" cpuset=\"0x3\" "                            \
	"nodeset=\"0x3\">" inside "</object></topology>"
#define PU(index)        "<object type=\"PU\" os_index=\"" index "\"/>"
#define CORE(index, set) "<object type=\"Core\" cpuset=\"0x" set "\">" PU(index) "</object>"
#define NODE(index, gib, more)                                                                     \
	"<object type=\"NUMANode\" os_index=\"" index "\" local_memory=\"" gib "073741824\" " more \
	"/>"
#define BRIDGE(inside) "<object type=\"Bridge\">" inside "</object>"
#define FUNCTION(bus, type, inside)                                                                \
	"<object type=\"PCIDev\" pci_busid=\"" bus "\" pci_type=\"" type                           \
	" [0000:0000] a1\">" inside "</object>"
#define GPU(bus) FUNCTION(bus, "0302 [10de:2330]", "")
#define NIC(bus, name, type, facts)                                                                \
	FUNCTION(bus, "0207 [15b3:1021]",                                                          \
		 "<object type=\"OSDev\" name=\"" name "\" osdev_type=\"" type "\">" facts         \
		 "</object>")
#define FACT(name, value) "<info name=\"" name "\" value=\"" value "\"/>"

/* Formats, the memory of GPUs, bridges, adapters that are no mlx. */
static void test_hwloc(void)
{
	static const struct {
		const char *name, *xml, *want, *nics;
	} cases[] = {
		{"a GPU's memory",
		 MACHINE(" version=\"2.0\"",
			 NODE("0", "1", "") NODE("1", "96", "subtype=\"GPUMemory\"") CORE("0", "1")
				 CORE("1", "2") GPU("0000:01:00.0")),
		 "1 1 2 2 1\n0000:01:00.0 0 - unknown", ""},
		{"the same as a fact of format 1",
		 MACHINE("", NODE("0", "1", "")
				     CORE("0", "1") "<object type=\"NUMANode\" os_index=\"1\" "
						    "local_memory=\"9\">" FACT(
							    "Type",
							    "GPUMemory") "</object>" GPU("0000:01:"
											 "00.0")),
		 "1 1 1 1 1\n0000:01:00.0 0 - unknown", ""},
		{"processors that are not allowed",
		 "<topology version=\"2.0\"><object type=\"Machine\" "
		 "allowed_cpuset=\"0x00000001,0x0\" allowed_nodeset=\"0xf...f,0xfffffffe\">" NODE(
			 "0", "1", "") NODE("1", "1", "") NODE("40", "1", "") PU("0")
			 PU("32") "</object></topology>",
		 "1 2 1 1 2", ""},
		/* one switch, several, the host bridge, another one */
		{"bridges",
		 MACHINE(" version=\"2.0\"",
			 NODE("0", "1", "") CORE("0", "1") BRIDGE(
				 BRIDGE(BRIDGE(BRIDGE(GPU("0000:01:00.0")) BRIDGE(
					 NIC("0000:02:00.0", "ib0", "3", ""))
						       BRIDGE(BRIDGE(BRIDGE(GPU("0000:03:00.0"))))))
					 BRIDGE(GPU("0000:04:00.0"))) BRIDGE(GPU("0001:05:00.0"))),
		 "1 1 1 1 1\n0000:01:00.0 0 ib0 pix\n0000:03:00.0 0 ib0 pxb\n"
		 "0000:04:00.0 0 ib0 phb\n0001:05:00.0 0 ib0 node",
		 "ib0 infiniband unknown 0000:02:00.0 0 0\n"},
		{"equally near ones, and a port that is down",
		 MACHINE(" version=\"3.0\"",
			 NODE("0", "1", "") CORE("0", "1") BRIDGE(
				 BRIDGE(GPU("0000:01:00.0")) BRIDGE(GPU("0000:02:00.0"))
					 BRIDGE(NIC("0000:03:00.0", "bnxt_re0", "48", "")) BRIDGE(
						 NIC("0000:04:00.0", "rdmap4s0", "48",
						     FACT("Port1LID", "0x0")
							     FACT("Port1State", "4")))
						 BRIDGE(NIC("0000:05:00.0", "rocep5s0", "48",
							    FACT("Port1State", "1"))))),
		 "1 1 1 1 1\n0000:01:00.0 0 bnxt_re0 phb\n"
		 "0000:02:00.0 0 rdmap4s0 phb",
		 "bnxt_re0 roce unknown 0000:03:00.0 0 0\n"
		 "rdmap4s0 roce up 0000:04:00.0 0 0\n"
		 "rocep5s0 roce down 0000:05:00.0 0 0\n"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_discover_config config = {.hwloc_xml = "f", .hwloc_text = cases[i].xml};
		struct gf_host h = {0};
		struct gf_error err = {""};
		char *got, *nics;

		EXPECT(!gf_discover_host(&config, &h, &err), "%s: %s", cases[i].name, err.text);
		got = print_host(&h);
		nics = print_nics(&h);
		EXPECT_TEXT(got, cases[i].want);
		EXPECT_TEXT(nics, cases[i].nics);
		free(got);
		free(nics);
		gf_discover_host_release(&h);
	}
}

/* One machine, as three versions of hwloc wrote it. */
static void test_formats(void)
{
	static const char *const files[] = {"tests/data/hwloc/mirage-1.xml",
					    "tests/data/hwloc/mirage-3.xml"};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(files); i++) {
		struct gf_discover_config config = {.hwloc_xml = files[i]};
		struct gf_host h = {0};
		struct gf_error err = {""};
		char *got, *nics;

		EXPECT(!gf_discover_host(&config, &h, &err), "%s", err.text);
		got = print_host(&h);
		nics = print_nics(&h);
		EXPECT_TEXT(h.name, "mirage004");
		EXPECT_TEXT(got, "2 2 12 24 35.99\n0000:06:00.0 0 mlx4_0 phb\n"
				 "0000:14:00.0 1 mlx4_0 sys\n"
				 "0000:11:00.0 1 mlx4_0 sys");
		EXPECT(strstr(nics, "ib0 ipoib") && strstr(nics, "mlx4_0 infiniband"), "%s", nics);
		free(got);
		free(nics);
		gf_discover_host_release(&h);
	}
}

static void test_this_machine(void)
{
	struct gf_discover_config config = {.sysfs = GF_DISCOVER_SYSFS, .nvml = GF_DISCOVER_NVML};
	struct gf_host h = {0};
	struct gf_error err = {""};
	double rate = 0;

	EXPECT(gf_discover_host(&config, &h, &err) == 0, "%s", err.text);
	EXPECT(h.cores >= 1 && h.threads >= h.cores && h.sockets >= 1, "%d %d", h.cores, h.threads);
	EXPECT(h.name && *h.name, "no name");
	gf_discover_host_release(&h);
	EXPECT(gf_discover_copy_rate(&rate, &err) == 0, "%s", err.text);
	EXPECT(rate > 1e6, "%g", rate);
}

/* A host with an Ethernet interface of that rate and some GPUs. */
static struct gf_host make_host(const char *name, double nic_rate, int gpus)
{
	struct gf_host h = {.name = gf_xstrdup(name), .cores = 8};

	gf_discover_add_nic(&h, gf_xstrdup("eth0"), "ethernet", "up")->bandwidth_bytes_per_s =
		nic_rate;
	while (gpus-- > 0)
		gf_discover_add_device(&h, "gpu", gf_xstrdup("test"), NULL)->bandwidth_bytes_per_s =
			3e10;
	return h;
}

/* "name:size@rate(link)" of every level */
static char *print_levels(const struct gf_topology *t)
{
	struct gf_text text = {0};
	size_t i;

	for (i = 0; i < t->nlevels; i++)
		gf_text_addf(&text, "%s%s:%zu@%g(%s)", i ? " " : "", t->levels[i].name,
			     t->levels[i].size, t->levels[i].bandwidth_bytes_per_s,
			     t->levels[i].link);
	return gf_text_take(&text);
}

static void test_job(void)
{
	static const struct {
		const char *name;
		struct {
			size_t nhosts;
			double nic[3];
			int gpus[3];
		};
		struct {
			int ranks;
			size_t host_of[6];
			enum gf_ranks_on on;
		};
		const char *levels; /* NULL: refused */
		int remark;
	} cases[] = {
		{"one rank", {1, {1e8}, {0}}, {1, {0}, 0}, "host:1@8e+09(shm)", 0},
		{"one host", {1, {1e8}, {0}}, {4, {0, 0, 0, 0}, 0}, "host:4@8e+09(shm)", 0},
		{"two hosts",
		 {2, {1e8, 1e8}, {0}},
		 {4, {0, 0, 1, 1}, 0},
		 "host:2@8e+09(shm) net:2@1e+08(ethernet)",
		 0},
		{"the slower interface counts",
		 {2, {1e9, 1e8}, {0}},
		 {4, {0, 0, 1, 1}, 0},
		 "host:2@8e+09(shm) net:2@1e+08(ethernet)",
		 0},
		{"one rank per host",
		 {3, {1e8, 1e8, 1e8}, {0}},
		 {3, {0, 1, 2}, 0},
		 "net:3@1e+08(ethernet)",
		 0},
		{"round robin",
		 {2, {1e8, 1e8}, {0}},
		 {4, {0, 1, 0, 1}, 0},
		 "net:4@5e+07(ethernet)",
		 1},
		{"uneven", {2, {1e8, 1e8}, {0}}, {3, {0, 0, 1}, 0}, "net:3@5e+07(ethernet)", 1},
		{"uneven, divisible",
		 {2, {1e8, 1e8}, {0}},
		 {4, {0, 0, 0, 1}, 0},
		 "net:4@3.33333e+07(ethernet)",
		 1},
		{"GPUs for all",
		 {2, {1e8, 1e8}, {2, 2}},
		 {4, {0, 0, 1, 1}, 0},
		 "host:2@3e+10(pcie) net:2@1e+08(ethernet)",
		 0},
		{"GPUs for some",
		 {2, {1e8, 1e8}, {2, 1}},
		 {4, {0, 0, 1, 1}, 0},
		 "host:2@8e+09(shm) net:2@1e+08(ethernet)",
		 0},
		{"GPUs not wanted",
		 {1, {1e8}, {2}},
		 {2, {0, 0}, GF_RANKS_ON_CPU},
		 "host:2@8e+09(shm)",
		 0},
		{"GPUs demanded",
		 {2, {1e8, 1e8}, {2, 1}},
		 {4, {0, 0, 1, 1}, GF_RANKS_ON_GPU},
		 NULL,
		 0},
	};
	size_t i, h;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_topology t = {0};
		struct gf_text remark = {0};
		struct gf_error err = {""};
		char *levels;
		int rc;

		t.hosts = gf_xcalloc(cases[i].nhosts, sizeof(*t.hosts));
		t.nhosts = cases[i].nhosts;
		for (h = 0; h < t.nhosts; h++)
			t.hosts[h] = make_host("h", cases[i].nic[h], cases[i].gpus[h]);
		rc = gf_levels_of_job(&t, cases[i].host_of, cases[i].ranks, cases[i].on, &remark,
				      &err);
		levels = print_levels(&t);
		if (cases[i].levels) {
			EXPECT(rc == 0, "%s: %s", cases[i].name, err.text);
			EXPECT_TEXT(levels, cases[i].levels);
			EXPECT(t.ranks == cases[i].ranks, "%s", cases[i].name);
			EXPECT((remark.length > 0) == cases[i].remark, "%s", cases[i].name);
		} else {
			EXPECT(rc == -ENOTSUP, "%s", cases[i].name);
		}
		free(levels);
		gf_text_release(&remark);
		gf_topology_release(&t);
	}
}

static void test_synthetic(void)
{
	static const struct {
		const char *spec, *want; /* levels, or the reason */
		int ranks;               /* 0: refused */
	} cases[] = {
		{"gpu:4@32GB/s,3us node:16@12.5GB/s,5us rack:3@200GB/s,5us",
		 "gpu:4@3.2e+10(gpu) node:16@1.25e+10(node) "
		 "rack:3@2e+11(rack)",
		 192},
		{" host:2@8GB/s,1us,shm\n net:4@1Gb/s,50us,ethernet ",
		 "host:2@8e+09(shm) net:4@1.25e+08(ethernet)", 8},
		{"net:4@125MB/s,0s", "net:4@1.25e+08(net)", 4},
		{"gpu:8@450GB/s,3us node:4@8x400Gb/s,5us", "gpu:8@4.5e+11(gpu) node:4@4e+11(node)",
		 32},
		{"", "want NAME:SIZE@RATE,LATENCY[,LINK], got nothing", 0},
		{"net", "level \"net\": want NAME:SIZE@RATE,LATENCY[,LINK]", 0},
		{"net:4@1Gb/s", "level \"net:4@1Gb/s\": want NAME:SIZE@RATE,LATENCY[,LINK]", 0},
		{"a b:2@1Gb/s,1us", "level \"a\": want NAME:SIZE@RATE,LATENCY[,LINK]", 0},
		{"n/t:4@1Gb/s,1us", "level \"n/t:4@1Gb/s,1us\": want NAME:SIZE@RATE,LATENCY[,LINK]",
		 0},
		{"a:2@1Gb/s,1us a:2@1Gb/s,1us",
		 "level \"a:2@1Gb/s,1us\": want a name of its own, a is taken", 0},
		{"a:65536@1Gb/s,1us b:65536@1Gb/s,1us",
		 "want at most 16777216 ranks in all levels together", 0},
	};
	static const char *const bad_figures[] = {
		"net:0@1Gb/s,1us",    "net:-2@1Gb/s,1us", "net:x@1Gb/s,1us",  "net:4@0Gb/s,1us",
		"net:4@1furlong,1us", "net:4@1Gb/s,-1us", "net:4@1Gb/s,soon", "net:4@nanB/s,1us",
		"net:4@0x1Gb/s,1us",  "net:4@x1Gb/s,1us", "net:4@8x,1us",
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_topology t = {0};
		struct gf_error err = {""};
		int rc = gf_levels_synthetic(cases[i].spec, &t, &err);
		char *levels = print_levels(&t);

		EXPECT(rc == (cases[i].ranks ? 0 : -EINVAL), "%s: %d", cases[i].spec, rc);
		EXPECT_TEXT(cases[i].ranks ? levels : err.text, cases[i].want);
		EXPECT(t.ranks == cases[i].ranks, "%s: %d", cases[i].spec, t.ranks);
		free(levels);
		gf_topology_release(&t);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(bad_figures); i++) {
		struct gf_topology t = {0};
		struct gf_error err = {""};

		EXPECT(gf_levels_synthetic(bad_figures[i], &t, &err) == -EINVAL, "%s",
		       bad_figures[i]);
		EXPECT(strstr(err.text, bad_figures[i]) != NULL, "%s", err.text);
		EXPECT(t.nlevels == 0, "output touched");
	}
}

/* Who shares a way out, or how many interfaces it has. */
static void test_way_out(void)
{
	static const struct {
		const char *spec, *want;
	} cases[] = {
		{"gpu:8@450GB/s,3us,nvlink node:4@400Gb/s,5us,roce",
		 "node x4: roce, 8 ranks share 400 Gb/s (assumed), 5.00 us (assumed)\n"
		 "└─ gpu x8: nvlink, 450 GB/s (assumed), 3.00 us (assumed)\n"},
		{"gpu:8@450GB/s,3us,nvlink node:4@8x400Gb/s,5us,roce",
		 "node x4: roce, 8 NICs of 400 Gb/s (assumed), 5.00 us (assumed)\n"
		 "└─ gpu x8: nvlink, 450 GB/s (assumed), 3.00 us (assumed)\n"},
		{"host:2@12GB/s,5us,pcie net:4@1x25Gb/s,3us rack:2@100Gb/s,3us",
		 "rack x2: rack, 8 ranks share 100 Gb/s (assumed), 3.00 us (assumed)\n"
		 "└─ net x4: net, 1 NIC of 25 Gb/s (assumed), 3.00 us (assumed)\n"
		 "   └─ host x2: pcie, 12.0 GB/s (assumed), 5.00 us (assumed)\n"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_topology t = {0};
		struct gf_text text = {0};

		EXPECT(!gf_levels_synthetic(cases[i].spec, &t, NULL), "%s", cases[i].spec);
		t.name = gf_xstrdup("test");
		t.source = gf_xstrdup("synthetic");
		gf_tree_draw(&t, false, &text);
		EXPECT_TEXT(strchr(text.data, '\n') + 1, cases[i].want);
		gf_text_release(&text);
		gf_topology_release(&t);
	}
}

static void test_tree(void)
{
	static const char want[] =
		"topology test (synthetic): 8 ranks\n"
		"net x4: ethernet, 2 ranks share 1 Gb/s (assumed), 50.0 us (assumed)\n"
		"└─ host x2: shm, 8.00 GB/s (assumed), 1.00 us (assumed)\n"
		"└─ n0: 8 cores\n"
		"   ├─ gpu test, 30.0 GB/s (assumed)\n"
		"   └─ eth0: ethernet, up, rate unknown\n";
	struct gf_topology t = {0};
	struct gf_text text = {0};

	EXPECT(gf_levels_synthetic("host:2@8GB/s,1us,shm net:4@1Gb/s,50us,ethernet", &t, NULL) == 0,
	       "spec");
	t.name = gf_xstrdup("test");
	t.source = gf_xstrdup("synthetic");
	t.hosts = gf_xcalloc(1, sizeof(*t.hosts));
	t.nhosts = 1;
	t.hosts[0] = make_host("n0", 0, 1);
	t.hosts[0].devices[0].numa = -1;
	t.hosts[0].nics[0].numa = -1;
	gf_tree_draw(&t, false, &text);
	EXPECT_TEXT(text.data, want);
	gf_text_release(&text);
	gf_topology_release(&t);
}

/* Threads as ranks, which take themselves for ranks of several hosts. */
static void job_on(struct gf_comm *comm, void *ctx)
{
	static const struct {
		int host[4];
		const char *levels;
	} cases[] = {
		{{0, 0, 0, 0}, "host:4@8e+09(shm)"},
		{{0, 0, 2, 2}, "host:2@3.15077e+10(pcie) net:2@5e+10(infiniband)"},
		{{0, 1, 2, 3}, "net:4@5e+10(infiniband)"},
		{{0, 1, 0, 1}, "net:4@2.5e+10(infiniband)"},
	};
	struct gf_discover_job job = {
		.probe = {.sysfs = "tests/data/sysfs/gpu-node", .hwloc_xml = machine},
	};
	size_t i;

	(void)ctx;
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_topology t = {0};
		struct gf_text remark = {0};
		struct gf_error err = {""};
		char *levels;

		comm->host = cases[i].host[comm->rank];
		EXPECT(!gf_discover_job(comm, &job, &t, &remark, &err), "%s", err.text);
		levels = print_levels(&t);
		EXPECT_TEXT(levels, comm->rank > 0 ? "" : cases[i].levels);
		EXPECT((remark.length > 0) == (comm->rank == 0 && i == 3), "case %zu: %s", i,
		       remark.data);
		free(levels);
		gf_text_release(&remark);
		gf_topology_release(&t);
	}
	/* one rank's failure is every rank's */
	job.probe.hwloc_xml = "tests/data/absent.xml";
	comm->host = 0;
	{
		struct gf_topology t = {0};
		struct gf_text remark = {0};
		struct gf_error err = {""};

		EXPECT(gf_discover_job(comm, &job, &t, &remark, &err) < 0, "rank %d", comm->rank);
		EXPECT(strstr(err.text, "rank 0") && strstr(err.text, "absent"), "%s", err.text);
		EXPECT(t.nhosts == 0, "output touched");
	}
}

static void test_job_of_threads(void)
{
	on_ranks(4, job_on, NULL);
}

/* Another rank answers with a topology of one host. */
static void test_answers(void)
{
	static const char none[] =
		"{\"format\": \"gf-topology\", \"version\": 1, \"producer\": \"p\", \"name\": "
		"\"n\", \"source\": \"assumed\", \"levels\": []}";
	static const char one[] =
		"{\"format\": \"gf-topology\", \"version\": 1, \"producer\": \"p\", \"name\": "
		"\"n\", \"source\": \"assumed\", \"levels\": [], \"hosts\": [{\"name\": \"n1\"}]}";
	struct gf_host host = {0};
	struct gf_error err = {""};

	EXPECT(gf_discover_host_read(none, strlen(none), "f", &host, &err) == -EINVAL && !host.name,
	       "%s", err.text);
	EXPECT_TEXT(err.text, "f: /hosts: want one host, got 0");
	EXPECT(!gf_discover_host_read(one, strlen(one), "f", &host, &err), "%s", err.text);
	EXPECT_TEXT(host.name, "n1");
	gf_discover_host_release(&host);
}

int main(void)
{
	watchdog(120);
	test_answers();
	test_nics();
	test_machine();
	test_refused();
	test_damaged();
	test_entities();
	test_hwloc();
	test_formats();
	test_this_machine();
	test_job();
	test_job_of_threads();
	test_synthetic();
	test_way_out();
	test_tree();
	return TEST_END();
}
