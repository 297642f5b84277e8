/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links between GPUs in hwloc's XML: matrices of MB/s between objects that
 * are named by their gp_index, or by type and gp_index.
 *
 *	<distances2 type="OSDev" nbobjs="2" name="NVLinkBandwidth"
 *		indexing="gp"> <indexes>37 40</indexes>
 *		<u64values>1000000 38000 38000 1000000</u64values>
 *	<distances2hetero ...> <indexes>OSDev:37 PCIDev:40</indexes> ...
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "probe/hwloc_xml.h"

/* Of a matrix; hosts have some tens of GPUs and switches. */
enum { OBJECTS = 128 };

/* The object of an index, and the PCI function that it is or is below. */
static const struct gf_markup *find(const struct gf_markup *e,
				    unsigned long index,
				    const struct gf_markup **pci)
{
	const struct gf_markup *found = NULL, *above = *pci;
	const char *own = gf_markup_get(e, "gp_index");
	size_t i;

	if (gf_markup_get(e, "pci_type"))
		*pci = e;
	if (own && strtoul(own, NULL, 10) == index)
		return e;
	for (i = 0; i < e->nchildren && !found; i++)
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

static void add_link(struct gf_host *host, const struct gf_device *a,
		     const struct gf_device *b, enum gf_path path,
		     unsigned long mb_per_s)
{
	host->links = gf_xreallocarray(host->links, host->nlinks + 1,
				       sizeof(*host->links));
	host->links[host->nlinks++] = (struct gf_device_link){
		.from = gf_xstrdup(a->pci),
		.to = gf_xstrdup(b->pci),
		.path = path,
		.bandwidth_bytes_per_s = (double)mb_per_s * 1e6,
		.bandwidth_origin = GF_ORIGIN_REPORTED,
	};
}

/* Direct links have a rate each; those to switches add up, and lead to every
 * GPU that has some. A text with too few values says nothing. */
static void add_matrix(const struct gf_markup *root, const char *indexes,
		       const char *values, enum gf_path direct,
		       struct gf_host *host)
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
		is_switch[n] = o && gf_hwloc_is_subtype(o, "NVSwitch");
		at[n] = pci && gf_hwloc_address(pci, address)
				? gf_probe_find_device(host, address)
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
				add_link(host, at[i], at[k], GF_PATH_NVSWITCH,
					 rate);
			else if (rates[i * n + k])
				add_link(host, at[i], at[k], direct,
					 rates[i * n + k]);
		}
	free(rates);
}

/* The texts of all children of that name. */
static struct gf_text text_of(const struct gf_markup *e, const char *name)
{
	struct gf_text t = {0};
	const char *text;
	size_t i;

	for (i = 0; i < e->nchildren; i++) {
		text = gf_markup_get(e->children[i], "");
		if (strcmp(e->children[i]->name, name) == 0 && text)
			gf_text_addf(&t, "%s ", text);
	}
	return t;
}

void gf_hwloc_links(const struct gf_markup *root, struct gf_host *host)
{
	static const struct {
		const char *name;
		enum gf_path direct;
	} kinds[] = {{"NVLinkBandwidth", GF_PATH_NVLINK},
		     {"XGMIBandwidth", GF_PATH_XGMI}};
	size_t i, k;

	for (k = 0; k < GF_ARRAY_LENGTH(kinds); k++)
		for (i = 0; i < root->nchildren; i++) {
			const struct gf_markup *c = root->children[i];
			const char *name = gf_markup_get(c, "name");
			struct gf_text indexes, values;

			if (strncmp(c->name, "distances2", 10) != 0 || !name ||
			    strcmp(name, kinds[k].name) != 0)
				continue;
			indexes = text_of(c, "indexes");
			values = text_of(c, "u64values");
			add_matrix(root, indexes.data, values.data,
				   kinds[k].direct, host);
			gf_text_release(&indexes);
			gf_text_release(&values);
			break;
		}
}
