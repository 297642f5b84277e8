/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"

/* Inception-v4 (Szegedy et al. 2017) */

struct step {
	size_t filters;
	struct window w;
};

static int basic(struct net *n, int x, const char *prefix, struct step s)
{
	x = net_conv(n, x, net_name("%s.conv", prefix), s.filters, s.w);
	x = net_batchnorm(n, x, net_name("%s.bn", prefix));
	n->m.layers[x].epsilon = 0.001;
	return net_relu(n, x, net_name("%s.relu", prefix));
}

/* Convolutions one after the other; ends where filters is 0. */
static int branch(struct net *n, int x, const char *prefix,
		  const struct step *steps)
{
	int i;

	for (i = 0; steps[i].filters; i++) {
		char *step = gf_xasprintf("%s.%d", prefix, i);

		x = basic(n, x, step, steps[i]);
		free(step);
	}
	return x;
}

#define ONE   square(1, 1, 0)
#define THREE square(3, 1, 1)
#define HALVE square(3, 2, 0)
#define BRANCH(...)                                                            \
	(const struct step[])                                                  \
	{                                                                      \
		__VA_ARGS__,                                                   \
		{                                                              \
			0                                                      \
		}                                                              \
	}

static int inception_branch(struct net *n, int x, const char *block, int index,
			    const struct step *steps)
{
	char *prefix = gf_xasprintf("%s.branch%d", block, index);

	x = branch(n, x, prefix, steps);
	free(prefix);
	return x;
}

/* The branch that pools and then, maybe, convolves. */
static int pool_branch(struct net *n, int x, const char *block, int index,
		       size_t filters)
{
	x = net_pool(n, GF_LAYER_AVGPOOL, x,
		     net_name("%s.branch%d.pool", block, index),
		     square(3, 1, 1));
	return inception_branch(n, x, block, index, BRANCH({filters, ONE}));
}

static int halve_pool(struct net *n, int x, const char *block, int index)
{
	return net_pool(n, GF_LAYER_MAXPOOL, x,
			net_name("%s.branch%d.pool", block, index), HALVE);
}

static int inception_stem(struct net *n)
{
	int x, b[2];

	x = branch(n, NET_INPUT, "features",
		   BRANCH({32, HALVE}, {32, square(3, 1, 0)}, {64, THREE}));
	b[0] = halve_pool(n, x, "features.3", 0);
	b[1] = inception_branch(n, x, "features.3", 1, BRANCH({96, HALVE}));
	x = net_concat(n, "features.3.concat", b, 2);
	b[0] = inception_branch(n, x, "features.4", 0,
				BRANCH({64, ONE}, {96, square(3, 1, 0)}));
	b[1] = inception_branch(n, x, "features.4", 1,
				BRANCH({64, ONE}, {64, same(1, 7)},
				       {64, same(7, 1)},
				       {96, square(3, 1, 0)}));
	x = net_concat(n, "features.4.concat", b, 2);
	b[0] = inception_branch(n, x, "features.5", 0, BRANCH({192, HALVE}));
	b[1] = halve_pool(n, x, "features.5", 1);
	return net_concat(n, "features.5.concat", b, 2);
}

static int inception_a(struct net *n, int x, const char *block)
{
	int b[4];

	b[0] = inception_branch(n, x, block, 0, BRANCH({96, ONE}));
	b[1] = inception_branch(n, x, block, 1, BRANCH({64, ONE}, {96, THREE}));
	b[2] = inception_branch(n, x, block, 2,
				BRANCH({64, ONE}, {96, THREE}, {96, THREE}));
	b[3] = pool_branch(n, x, block, 3, 96);
	return net_concat(n, net_name("%s.concat", block), b, 4);
}

static int reduction_a(struct net *n, int x, const char *block)
{
	int b[3];

	b[0] = inception_branch(n, x, block, 0, BRANCH({384, HALVE}));
	b[1] = inception_branch(n, x, block, 1,
				BRANCH({192, ONE}, {224, THREE}, {256, HALVE}));
	b[2] = halve_pool(n, x, block, 2);
	return net_concat(n, net_name("%s.concat", block), b, 3);
}

static int inception_b(struct net *n, int x, const char *block)
{
	int b[4];

	b[0] = inception_branch(n, x, block, 0, BRANCH({384, ONE}));
	b[1] = inception_branch(
		n, x, block, 1,
		BRANCH({192, ONE}, {224, same(1, 7)}, {256, same(7, 1)}));
	b[2] = inception_branch(n, x, block, 2,
				BRANCH({192, ONE}, {192, same(7, 1)},
				       {224, same(1, 7)}, {224, same(7, 1)},
				       {256, same(1, 7)}));
	b[3] = pool_branch(n, x, block, 3, 128);
	return net_concat(n, net_name("%s.concat", block), b, 4);
}

static int reduction_b(struct net *n, int x, const char *block)
{
	int b[3];

	b[0] = inception_branch(n, x, block, 0,
				BRANCH({192, ONE}, {192, HALVE}));
	b[1] = inception_branch(n, x, block, 1,
				BRANCH({256, ONE}, {256, same(1, 7)},
				       {320, same(7, 1)}, {320, HALVE}));
	b[2] = halve_pool(n, x, block, 2);
	return net_concat(n, net_name("%s.concat", block), b, 3);
}

/* A branch that ends in a 1 x 3 and a 3 x 1 convolution side by side. */
static void fork_branch(struct net *n, int x, const char *block, int index,
			int *ends)
{
	char *a = gf_xasprintf("%s.branch%da", block, index);
	char *b = gf_xasprintf("%s.branch%db", block, index);

	ends[0] = basic(n, x, a, (struct step){256, same(1, 3)});
	ends[1] = basic(n, x, b, (struct step){256, same(3, 1)});
	free(a);
	free(b);
}

static int inception_c(struct net *n, int x, const char *block)
{
	int b[6], y;

	b[0] = inception_branch(n, x, block, 0, BRANCH({256, ONE}));
	y = inception_branch(n, x, block, 1, BRANCH({384, ONE}));
	fork_branch(n, y, block, 1, &b[1]);
	y = inception_branch(
		n, x, block, 2,
		BRANCH({384, ONE}, {448, same(3, 1)}, {512, same(1, 3)}));
	fork_branch(n, y, block, 2, &b[3]);
	b[5] = pool_branch(n, x, block, 3, 256);
	return net_concat(n, net_name("%s.concat", block), b, 6);
}

void model_inception_v4(struct net *n)
{
	static int (*const blocks[])(struct net *, int, const char *) = {
		inception_a, reduction_a, inception_b, reduction_b, inception_c,
	};
	static const int repeats[] = {4, 1, 7, 1, 3};
	int x = inception_stem(n), index = 6, k;
	size_t b;

	for (b = 0; b < GF_ARRAY_LENGTH(blocks); b++) {
		for (k = 0; k < repeats[b]; k++) {
			char *block = gf_xasprintf("features.%d", index++);

			x = blocks[b](n, x, block);
			free(block);
		}
	}
	x = net_simple(n, GF_LAYER_GLOBALPOOL, x, "avg_pool");
	net_fc(n, x, "last_linear", 1000);
}
