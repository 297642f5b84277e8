/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_SHIPPED_MODEL_H
#define GF_TESTS_SHIPPED_MODEL_H

#include "base/file.h"
#include "json/json.h"
#include "documents/models/model.h"
#include "test.h"

/* The caller releases it. */
static inline void load_model(const char *path, struct gf_model *model)
{
	struct gf_json *root = NULL;
	struct gf_error err = {""};
	char *text = NULL;
	size_t size;

	EXPECT(!gf_file_read(path, &text, &size, &err) &&
		       !gf_json_parse(text, size, path, &root, &err) &&
		       !gf_model_read(root, path, model, &err),
	       "%s", err.text);
	gf_json_free(root);
	free(text);
}

#endif
