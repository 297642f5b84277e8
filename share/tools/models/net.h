/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TOOLS_MODELS_NET_H
#define GF_TOOLS_MODELS_NET_H

#include <stddef.h>

#include "doc/model.h"

/*
 * Models, layer by layer. A function that adds layers takes the index of the
 * layer that they read (NET_INPUT: the model's input), and returns the index of
 * the last layer that was added.
 */
#define NET_INPUT (-1)

struct net {
	struct gf_model m;
	size_t capacity;
};

struct window {
	size_t high, wide, stride, pad_high, pad_wide, groups;
};

static inline struct window square(size_t side, size_t stride, size_t pad)
{
	return (struct window){side, side, stride, pad, pad, 1};
}

/* A window that keeps the size of an image: 1 x 7, 3 x 1, ... */
static inline struct window same(size_t high, size_t wide)
{
	return (struct window){high, wide, 1, high / 2, wide / 2, 1};
}

/* A name made of parts, good for the seven calls after it. */
char *net_name(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A layer as most are: stride, groups 1, with a bias; to be completed. */
struct gf_layer *net_push(struct net *n, enum gf_layer_type type,
			  const char *layer_name, const int *from,
			  size_t count);
/* The index of the last layer. */
int net_last(const struct net *n);
int net_simple(struct net *n, enum gf_layer_type type, int from,
	       const char *layer_name);
int net_relu(struct net *n, int from, const char *layer_name);
/* Without a bias, as is usual where batch norm follows. */
int net_conv(struct net *n, int from, const char *layer_name, size_t filters,
	     struct window w);
int net_conv_with_bias(struct net *n, int from, const char *layer_name,
		       size_t filters, struct window w);
int net_pool(struct net *n, enum gf_layer_type type, int from,
	     const char *layer_name, struct window w);
int net_batchnorm(struct net *n, int from, const char *layer_name);
int net_fc(struct net *n, int from, const char *layer_name, size_t outputs);
int net_dropout(struct net *n, int from, const char *layer_name, double rate);
int net_add(struct net *n, int a, int b, const char *layer_name);
int net_concat(struct net *n, const char *layer_name, const int *from,
	       size_t count);
/* Of the input. */
int net_embedding(struct net *n, const char *layer_name, size_t entries,
		  size_t outputs);

/* The models, one function each (images.c, resnet.c, ...). */
void model_alexnet(struct net *n);
void model_bert_base(struct net *n);
void model_cifar100_cnn(struct net *n);
void model_cifar100_convex(struct net *n);
void model_densenet201(struct net *n);
void model_inception_v4(struct net *n);
void model_lstm_ptb(struct net *n);
void model_lstm_text(struct net *n);
void model_mnist_mlp(struct net *n);
void model_resnet152(struct net *n);
void model_resnet18(struct net *n);
void model_resnet20(struct net *n);
void model_resnet50(struct net *n);
void model_vgg16(struct net *n);

#endif
