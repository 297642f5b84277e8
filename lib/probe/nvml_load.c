/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"

#define AT(call) offsetof(struct gf_nvml, call)
static const struct {
	const char *symbol;
	size_t at;
	bool required;
} calls[] = {
	{"nvmlInit_v2", AT(init), true},
	{"nvmlShutdown", AT(shutdown), true},
	{"nvmlDeviceGetCount_v2", AT(count), true},
	{"nvmlDeviceGetHandleByIndex_v2", AT(device), true},
	{"nvmlDeviceGetPciInfo_v3", AT(pci), true},
	{"nvmlErrorString", AT(error), false},
	{"nvmlDeviceGetName", AT(name), false},
	{"nvmlDeviceGetMemoryInfo", AT(memory), false},
	{"nvmlDeviceGetCudaComputeCapability", AT(capability), false},
	{"nvmlDeviceGetMigMode", AT(mig), false},
	{"nvmlDeviceGetMaxPcieLinkGeneration", AT(pcie_generation), false},
	{"nvmlDeviceGetMaxPcieLinkWidth", AT(pcie_width), false},
	{"nvmlDeviceGetTopologyCommonAncestor", AT(ancestor), false},
	{"nvmlDeviceGetNvLinkState", AT(link_state), false},
	{"nvmlDeviceGetNvLinkRemotePciInfo_v2", AT(link_remote), false},
	{"nvmlDeviceGetNvLinkRemoteDeviceType", AT(link_remote_type), false},
	{"nvmlDeviceGetFieldValues", AT(fields), false},
};
#undef AT

static int find_calls(struct gf_nvml *n, const char *library,
		      struct gf_error *err)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(calls); i++) {
		void *found = dlsym(n->library, calls[i].symbol);

		if (!found && calls[i].required)
			return gf_error_set(err, -ELIBACC, "%s: it lacks %s",
					    library, calls[i].symbol);
		/* a function's address in a variable of a function type */
		memcpy((char *)n + calls[i].at, &found, sizeof(found));
	}
	return 0;
}

const char *gf_nvml_words(const struct gf_nvml *n, int status)
{
	const char *words = n->error ? n->error(status) : NULL;

	return words ? words : "an error without words";
}

int gf_nvml_open(const char *library, struct gf_nvml *n, struct gf_error *err)
{
	struct gf_nvml opened = {
		.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
	int rc, status;

	if (!opened.library)
		return gf_error_set(err, -ELIBACC, "%s", dlerror());
	rc = find_calls(&opened, library, err);
	status = rc == 0 ? opened.init() : 0;
	if (status)
		rc = gf_error_set(err, -ENOTSUP, "%s: %s", library,
				  gf_nvml_words(&opened, status));
	if (rc)
		dlclose(opened.library);
	else
		*n = opened;
	return rc;
}

void gf_nvml_close(struct gf_nvml *n)
{
	n->shutdown();
	dlclose(n->library);
	memset(n, 0, sizeof(*n));
}
