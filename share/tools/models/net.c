/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "base/heap.h"

char *net_name(const char *fmt, ...)
{
	/* more than are alive at once in any expression below */
	static char texts[8][128];
	static unsigned next;
	char *text = texts[next++ % GF_ARRAY_LENGTH(texts)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(texts[0]), fmt, ap);
	va_end(ap);
	return text;
}

struct gf_layer *net_push(struct net *n, enum gf_layer_type type,
			  const char *layer_name, const int *from, size_t count)
{
	struct gf_layer *l =
		gf_array_push(&n->m.layers, &n->m.nlayers, &n->capacity);

	l->name = gf_xstrdup(layer_name);
	l->type = type;
	l->inputs = gf_xmemdup(from, count * sizeof(*from));
	l->ninputs = count;
	l->stride = l->groups = 1;
	l->bias = true;
	l->epsilon = 1e-5;
	l->momentum = 0.1;
	return l;
}

int net_last(const struct net *n)
{
	return (int)n->m.nlayers - 1;
}

int net_simple(struct net *n, enum gf_layer_type type, int from,
	       const char *layer_name)
{
	net_push(n, type, layer_name, &from, 1);
	return net_last(n);
}

int net_relu(struct net *n, int from, const char *layer_name)
{
	return net_simple(n, GF_LAYER_RELU, from, layer_name);
}

static struct gf_layer *windowed(struct net *n, enum gf_layer_type type,
				 int from, const char *layer_name,
				 struct window w)
{
	struct gf_layer *l = net_push(n, type, layer_name, &from, 1);

	l->kernel = w.high;
	l->kernel_w = w.wide;
	l->stride = w.stride;
	l->pad = w.pad_high;
	l->pad_w = w.pad_wide;
	l->groups = w.groups;
	return l;
}

int net_conv(struct net *n, int from, const char *layer_name, size_t filters,
	     struct window w)
{
	struct gf_layer *l = windowed(n, GF_LAYER_CONV, from, layer_name, w);

	l->filters = filters;
	l->bias = false;
	return net_last(n);
}

int net_conv_with_bias(struct net *n, int from, const char *layer_name,
		       size_t filters, struct window w)
{
	net_conv(n, from, layer_name, filters, w);
	n->m.layers[net_last(n)].bias = true;
	return net_last(n);
}

int net_pool(struct net *n, enum gf_layer_type type, int from,
	     const char *layer_name, struct window w)
{
	windowed(n, type, from, layer_name, w);
	return net_last(n);
}

int net_batchnorm(struct net *n, int from, const char *layer_name)
{
	return net_simple(n, GF_LAYER_BATCHNORM, from, layer_name);
}

int net_fc(struct net *n, int from, const char *layer_name, size_t outputs)
{
	net_push(n, GF_LAYER_FC, layer_name, &from, 1)->filters = outputs;
	return net_last(n);
}

int net_dropout(struct net *n, int from, const char *layer_name, double rate)
{
	net_push(n, GF_LAYER_DROPOUT, layer_name, &from, 1)->rate = rate;
	return net_last(n);
}

int net_add(struct net *n, int a, int b, const char *layer_name)
{
	const int from[] = {a, b};

	net_push(n, GF_LAYER_ADD, layer_name, from, 2);
	return net_last(n);
}

int net_concat(struct net *n, const char *layer_name, const int *from,
	       size_t count)
{
	net_push(n, GF_LAYER_CONCAT, layer_name, from, count);
	return net_last(n);
}

int net_embedding(struct net *n, const char *layer_name, size_t entries,
		  size_t outputs)
{
	const int from = NET_INPUT;
	struct gf_layer *l =
		net_push(n, GF_LAYER_EMBEDDING, layer_name, &from, 1);

	l->entries = entries;
	l->filters = outputs;
	return net_last(n);
}
