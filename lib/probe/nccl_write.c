/* SPDX-License-Identifier: BSD-3-Clause */
/* A topology as NCCL's XML (format_nccl.c reads it). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "probe/topology_formats.h"
#include "probe/probe.h"

/* "16.0 GT/s PCIe" x 16 for a rate that such a link has. */
static void write_link(double bytes_per_s, struct gf_text *out)
{
	static const double speeds[] = {2.5, 5, 8, 16, 32, 64};
	double lanes;
	size_t i;

	for (lanes = 16; lanes >= 1; lanes /= 2)
		for (i = 0; i < GF_ARRAY_LENGTH(speeds); i++) {
			double rate = gf_probe_pcie_rate(speeds[i], lanes);

			if (fabs(rate / bytes_per_s - 1) > 0.01)
				continue;
			gf_text_addf(out,
				     " link_speed=\"%.1f GT/s PCIe\" "
				     "link_width=\"%.0f\"",
				     speeds[i], lanes);
			return;
		}
}

struct written {
	size_t gpus, nets;
};

static void write_devices(const struct gf_host *h, int numa,
			  struct written *done, struct gf_text *out)
{
	size_t i;

	for (i = 0; i < h->ndevices; i++) {
		const struct gf_device *d = &h->devices[i];

		if (!d->pci || strcmp(d->type, "gpu") != 0 || d->numa != numa)
			continue;
		gf_text_addf(out, "    <pci busid=\"%s\" class=\"0x030200\"",
			     d->pci);
		write_link(d->bandwidth_bytes_per_s, out);
		gf_text_addf(out, ">\n      <gpu dev=\"%zu\"/>\n    </pci>\n",
			     done->gpus++);
	}
	for (i = 0; i < h->nnics; i++) {
		const struct gf_nic *n = &h->nics[i];

		if (!n->pci || n->numa != numa || strcmp(n->state, "down") == 0)
			continue;
		gf_text_addf(out,
			     "    <pci busid=\"%s\" class=\"0x020000\">\n"
			     "      <nic>\n        <net name=\"%s\" "
			     "dev=\"%zu\"",
			     n->pci, n->name, done->nets++);
		if (n->bandwidth_bytes_per_s > 0)
			gf_text_addf(out, " speed=\"%.0f\"",
				     n->bandwidth_bytes_per_s * 8 / 1e6);
		gf_text_addf(out, "/>\n      </nic>\n    </pci>\n");
	}
}

static int plain(const char *text)
{
	return !text || !strpbrk(text, "<>&\"");
}

/* Writes the parts that the document has; NCCL itself discovers the rest. */
int gf_nccl_write(const struct gf_topology *t, struct gf_text *out,
		  struct gf_text *remarks, struct gf_error *err)
{
	const struct gf_host *h = t->nhosts ? &t->hosts[0] : NULL;
	struct written done = {0};
	size_t gpus = 0, i;
	int numa, last = -1;

	for (i = 0; h && i < h->ndevices; i++) {
		gpus += h->devices[i].pci && plain(h->devices[i].pci) &&
			strcmp(h->devices[i].type, "gpu") == 0;
		last = h->devices[i].numa > last ? h->devices[i].numa : last;
	}
	for (i = 0; h && i < h->nnics; i++) {
		if (!plain(h->nics[i].name) || !plain(h->nics[i].pci))
			return gf_error_set(err, -EINVAL,
					    "nccl: want names without <, >, & "
					    "and quotes, got %.40s",
					    h->nics[i].name);
		last = h->nics[i].numa > last ? h->nics[i].numa : last;
	}
	if (gpus == 0)
		return gf_error_set(err, -ENOTSUP,
				    "nccl: want a host with GPUs and their PCI "
				    "addresses, found none");
	if (t->nhosts > 1)
		gf_text_addf(remarks,
			     "nccl: the file describes one node: %s, the first "
			     "of %zu\n",
			     h->name, t->nhosts);
	gf_text_addf(out, "<system version=\"1\">\n");
	for (numa = -1; numa <= last; numa++) {
		struct gf_text inside = {0};

		write_devices(h, numa, &done, &inside);
		if (inside.length > 0)
			gf_text_addf(out, "  <cpu numaid=\"%d\">\n%s  </cpu>\n",
				     numa, inside.data);
		gf_text_release(&inside);
	}
	gf_text_addf(out, "</system>\n");
	gf_text_addf(remarks,
		     "nccl: NVLinks are left out: NCCL finds them itself\n");
	if (done.nets < h->nnics)
		gf_text_addf(remarks,
			     "nccl: %zu of %zu interfaces are left out: down, "
			     "or without a PCI address\n",
			     h->nnics - done.nets, h->nnics);
	return 0;
}
