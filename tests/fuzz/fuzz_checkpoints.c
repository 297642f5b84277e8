/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of a checkpoint folder: a rank's part (safetensors), the manifest of a set, and the
 * folder's lock. Text is tried as the last two. A manifest gets the digest that it ought to have:
 * no mutation would come upon that.
 */
#include <errno.h>

#include "base/digest.h"
#include "checkpoints/set.h"
#include "checkpoints/safetensors.h"
#include "harness.h"

static bool try_part(const char *data, size_t size)
{
	const char *path = harness_put("rank-0.safetensors", data, size);
	struct gf_safetensors s;
	struct gf_error err = {""};
	struct gf_file_seal seal;
	size_t i, step;
	char *text;

	if (gf_safetensors_open(path, &s, &err)) {
		harness_expect_line(&err, path);
		return false;
	}
	for (i = 0; i < s.ntensors; i++) {
		const struct gf_stored_tensor *t = &s.tensors[i];
		void *out = gf_xmalloc(t->end - t->begin + 1);

		if (gf_safetensors_load(&s, t->name, t->dtype, t->count_elems, out, &err))
			harness_expect_line(&err, path);
		free(out);
	}
	if (gf_safetensors_seal(&s, &seal, &err) || seal.size_bytes != size)
		harness_fail("the seal of a sound file", err.text);
	if (!gf_safetensors_metadata(&s, "run", &text, &err))
		free(text);
	gf_safetensors_metadata_size(&s, "step", 0, 1000, &step, &err);
	gf_safetensors_close(&s);
	return true;
}

/* The text up to its own digest, and then the right one. */
static void put_manifest(const char *data, size_t size)
{
	static const char key[] = "\"sha256\": \"";
	const char *at, *end = data + size, *last = end;
	char whole[GF_DIGEST_TEXT];
	struct gf_text t = {0};

	for (at = data; (at = memmem(at, (size_t)(end - at), key, sizeof(key) - 1));)
		last = at += sizeof(key) - 1;
	gf_text_add(&t, data, (size_t)(last - data));
	gf_digest_text(t.data, t.length, whole);
	gf_text_addf(&t, "%s\"\n}\n", strchr(whole, ':') + 1);
	harness_put("manifest.json", t.data, t.length);
	gf_text_release(&t);
}

static bool try_manifest(const char *data, size_t size)
{
	struct gf_manifest m, copy;
	struct gf_error err = {""};
	char *path = gf_xasprintf("%s/manifest.json", harness_folder());
	int rc;

	put_manifest(data, size);
	rc = gf_manifest_read(path, 8, &m, &err);
	if (rc) {
		harness_expect_line(&err, path);
	} else {
		gf_manifest_copy(&copy, &m);
		free(gf_manifest_text(&copy));
		gf_manifest_release(&copy);
		gf_manifest_release(&m);
	}
	free(path);
	return !rc;
}

static void ignore(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
}

static void try_lock(const char *data, size_t size)
{
	const struct gf_checkpoint_claim claim = {.lease_s = 1e-3, .note = ignore};
	struct gf_checkpoint_owner *o;
	struct gf_error err = {""};
	int rc;

	harness_put(GF_OWNER_NAME, data, size);
	o = gf_checkpoint_claim(harness_folder(), &claim);
	rc = gf_checkpoint_claim_poll(o, &err);
	if (rc && rc != -EAGAIN)
		harness_expect_line(&err, NULL);
	gf_checkpoint_release(o);
}

static bool try_file(const char *data, size_t size, struct gf_rng *rng)
{
	bool accepted;

	(void)rng;
	if (*data != '{')
		return try_part(data, size);
	accepted = try_manifest(data, size);
	if (size < 1000)
		try_lock(data, size);
	return accepted;
}

const struct harness harness = {.try = try_file};
