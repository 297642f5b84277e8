/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen_models DIR: writes the models of the papers, and resnet20, as gf-model
 * documents. Layers carry the names that PyTorch's own versions give them, so
 * that profiles made there fit. tests/docs/models.sh compares what is shipped
 * in share/models with what this program writes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "doc/model.h"
#include "net.h"

static const struct {
	const char *name;
	struct gf_shape input;
	size_t classes;
	void (*build)(struct net *n);
} models[] = {
	{"alexnet-bn", {3, {3, 227, 227}}, 1000, model_alexnet},
	{"bert-base", {1, {64}}, 30522, model_bert_base},
	{"cifar100-cnn", {3, {3, 32, 32}}, 100, model_cifar100_cnn},
	{"cifar100-convex", {3, {3, 32, 32}}, 100, model_cifar100_convex},
	{"densenet201", {3, {3, 224, 224}}, 1000, model_densenet201},
	{"inception-v4", {3, {3, 224, 224}}, 1000, model_inception_v4},
	{"lstm-ptb", {1, {35}}, 10000, model_lstm_ptb},
	{"lstm-text", {1, {64}}, 128, model_lstm_text},
	{"mnist-mlp", {3, {1, 28, 28}}, 10, model_mnist_mlp},
	{"resnet152", {3, {3, 224, 224}}, 1000, model_resnet152},
	{"resnet18", {3, {3, 224, 224}}, 1000, model_resnet18},
	{"resnet20", {3, {3, 32, 32}}, 10, model_resnet20},
	{"resnet50", {3, {3, 224, 224}}, 1000, model_resnet50},
	{"vgg16", {3, {3, 224, 224}}, 1000, model_vgg16},
};

/* Written only if a reader takes it. */
static int write_model(const char *folder, struct gf_model *m,
		       struct gf_error *err)
{
	char *path = gf_xasprintf("%s/%s.json", folder, m->name);
	char *text = gf_model_write(m);
	struct gf_model read;
	struct gf_json *root;
	int rc;

	rc = gf_json_parse(text, strlen(text), path, &root, err);
	if (!rc) {
		rc = gf_model_read(root, path, &read, err);
		gf_json_free(root);
	}
	if (!rc) {
		gf_model_release(&read);
		rc = gf_file_write(path, text, strlen(text), err);
	}
	free(path);
	free(text);
	return rc;
}

int main(int argc, char **argv)
{
	struct gf_error err;
	size_t i;
	int rc = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: gen_models DIR\n");
		return 2;
	}
	for (i = 0; i < GF_ARRAY_LENGTH(models) && !rc; i++) {
		struct net n = {.m = {.input = models[i].input,
				      .classes = models[i].classes}};

		n.m.name = gf_xstrdup(models[i].name);
		models[i].build(&n);
		rc = write_model(argv[1], &n.m, &err);
		gf_model_release(&n.m);
	}
	if (rc)
		fprintf(stderr, "gen_models: %s\n", err.text);
	return rc ? 3 : 0;
}
