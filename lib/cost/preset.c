/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/preset.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/registry.h"

const char *const gf_precision_names[] = {"f32", "tf32", "f16", "bf16", "pure-bf16", NULL};

/*
 * To add a GPU for estimates: a row with the dense peaks and the memory's rate of its maker's data
 * sheet, and how drivers name the device.
 *
 * f16 stands for bf16, too, whose rate is the same where there is one. Rates that makers print with
 * sparsity are halved.
 */
const struct gf_preset gf_presets[] = {
	{"b200", "NVIDIA HGX B200 data sheet, per GPU", "B200", {{75e12, 1.1e15, 2.25e15}, 7.7e12}},
	{"h200", "NVIDIA H200 data sheet, SXM", "H200", {{67e12, 494.5e12, 989.5e12}, 4.8e12}},
	{"h100-pcie",
	 "NVIDIA H100 data sheet, PCIe",
	 "H100 PCIe",
	 {{51e12, 378e12, 756.5e12}, 2e12}},
	{"h100", "NVIDIA H100 data sheet, SXM", "H100", {{67e12, 494.5e12, 989.5e12}, 3.35e12}},
	{"a100-40gb",
	 "NVIDIA A100 data sheet, SXM, 40 GB",
	 "A100-SXM4-40GB",
	 {{19.5e12, 156e12, 312e12}, 1.555e12}},
	{"a100",
	 "NVIDIA A100 data sheet, SXM, 80 GB",
	 "A100",
	 {{19.5e12, 156e12, 312e12}, 2.039e12}},
	{"l40s", "NVIDIA L40S data sheet", "L40S", {{91.6e12, 183e12, 362.05e12}, 864e9}},
	{"l4", "NVIDIA L4 data sheet", "L4", {{30.3e12, 60e12, 121e12}, 300e9}},
	{"a10", "NVIDIA A10 data sheet", "A10", {{31.2e12, 62.5e12, 125e12}, 600e9}},
	{"v100", "NVIDIA V100 data sheet, SXM2", "V100", {{15.7e12, 0, 125e12}, 900e9, true}},
	{"t4", "NVIDIA T4 data sheet", "T4", {{8.1e12, 0, 65e12}, 300e9, true}},
	{"p100", "NVIDIA P100 data sheet, SXM2", "P100", {{10.6e12, 0, 21.2e12}, 732e9, true}},
	{"rtx2080ti",
	 "NVIDIA Turing architecture white paper",
	 "RTX 2080 Ti",
	 {{13.4e12, 0, 53.8e12}, 616e9, true}},
	{"mi300x",
	 "AMD Instinct MI300X data sheet",
	 "MI300X",
	 {{163.4e12, 653.7e12, 1307.4e12}, 5.3e12}},
	{"mi250x",
	 "AMD Instinct MI250X data sheet, one of its two dies",
	 "MI250X",
	 {{47.9e12, 0, 191.5e12}, 1.6384e12}},
	{NULL, NULL, NULL, {{0}, 0}},
};

static const struct gf_preset *find(const char *name)
{
	return gf_named_find(gf_presets, sizeof(*gf_presets), name);
}

/* A10 is not in A100, nor L4 in L40S. */
static bool names(const char *device, const char *word)
{
	size_t length = strlen(word);
	const char *at;

	for (at = device; *at; at++)
		if (strncasecmp(at, word, length) == 0 && !isalnum((unsigned char)at[length]) &&
		    (at == device || !isalnum((unsigned char)at[-1])))
			return true;
	return false;
}

const struct gf_preset *gf_preset_of(const struct gf_topology *t)
{
	const struct gf_preset *p;

	for (size_t h = 0; h < t->nhosts; h++)
		for (size_t d = 0; d < t->hosts[h].ndevices; d++)
			for (p = gf_presets; p->name; p++)
				if (t->hosts[h].devices[d].name &&
				    names(t->hosts[h].devices[d].name, p->device))
					return p;
	return NULL;
}

static int take_preset(const struct gf_preset *p, int precision, struct gf_estimate *in,
		       struct gf_text *text, struct gf_error *err)
{
	const char *asked, *name;
	bool in_bf16;

	if (precision < 0)
		precision = p->flops_per_s[GF_PRECISION_TF32] > 0 ? GF_PRECISION_TF32
								  : GF_PRECISION_F32;
	in->gradients = precision == GF_PRECISION_PURE_BF16 ? GF_BF16 : GF_F32;
	asked = gf_precision_names[precision];
	in_bf16 = precision >= GF_PRECISION_BF16;
	name = in_bf16 ? gf_precision_names[GF_PRECISION_BF16] : asked;
	if (in_bf16)
		precision = GF_PRECISION_F16;
	if (!(p->flops_per_s[precision] > 0) || (in_bf16 && p->no_bf16))
		return gf_error_set(err, -EINVAL, "--precision: want %s on %s, got %s",
				    p->no_bf16 ? "f32 or f16" : "f32, f16, bf16 or pure-bf16",
				    p->name, asked);
	in->flops_per_s = GF_PRESET_FLOPS_SHARE * p->flops_per_s[precision];
	in->memory_bytes_per_s = GF_PRESET_MEMORY_SHARE * p->memory_bytes_per_s;
	in->element_bytes = precision == GF_PRECISION_F16 ? 2 : 4;
	gf_text_addf(text,
		     "on %s, by assumed shares of its data sheet's peaks: %g %% of %g TFLOP/s "
		     "(%s), %g %% of %g GB/s",
		     p->name, 100 * GF_PRESET_FLOPS_SHARE, p->flops_per_s[precision] / 1e12, name,
		     100 * GF_PRESET_MEMORY_SHARE, p->memory_bytes_per_s / 1e9);
	if (in->gradients != GF_F32)
		gf_text_addf(text, ", gradients in %s", gf_dtype_names[in->gradients]);
	return 0;
}

int gf_rates_take(const struct gf_rates *r, const struct gf_topology *t, struct gf_estimate *in,
		  struct gf_text *text, struct gf_text *open, struct gf_error *err)
{
	static const struct gf_registry presets = {gf_presets, sizeof(*gf_presets), NULL};
	const struct gf_preset *p = r->gpu ? find(r->gpu) : NULL;

	if (r->gpu && !p)
		return gf_registry_refuse(&presets, "--gpu", NULL, r->gpu, err);
	if (!p && !(r->flops_per_s > 0) && t)
		p = gf_preset_of(t);
	if (p && !r->gpu)
		gf_text_addf(open, "%s as in the topology (--gpu, --flops)", p->name);
	if (p)
		return take_preset(p, r->precision, in, text, err);
	if (r->precision >= 0)
		return gf_error_set(err, -EINVAL, "--precision: want a GPU (--gpu), found none");
	in->flops_per_s = r->flops_per_s > 0 ? r->flops_per_s : GF_RATE_DEFAULT;
	gf_text_addf(text, "at %g TFLOP/s", in->flops_per_s / 1e12);
	if (!(r->flops_per_s > 0))
		gf_text_addf(open, "%g TFLOP/s (--gpu, --flops)", in->flops_per_s / 1e12);
	return 0;
}
