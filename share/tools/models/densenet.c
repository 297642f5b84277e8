/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"

/* DenseNet-201 (Huang et al. 2017), growth 32 */

static int norm_relu_conv(struct net *n, int x, const char *prefix, int index,
			  size_t filters, struct window w)
{
	x = net_batchnorm(n, x, net_name("%s.norm%d", prefix, index));
	x = net_relu(n, x, net_name("%s.relu%d", prefix, index));
	return net_conv(n, x, net_name("%s.conv%d", prefix, index), filters, w);
}

static int dense_layer(struct net *n, int x, const char *prefix)
{
	int pair[2] = {x, 0};

	x = norm_relu_conv(n, x, prefix, 1, 128, square(1, 1, 0));
	pair[1] = norm_relu_conv(n, x, prefix, 2, 32, square(3, 1, 1));
	return net_concat(n, net_name("%s.concat", prefix), pair, 2);
}

static int transition(struct net *n, int x, int index, size_t filters)
{
	x = net_batchnorm(n, x, net_name("features.transition%d.norm", index));
	x = net_relu(n, x, net_name("features.transition%d.relu", index));
	x = net_conv(n, x, net_name("features.transition%d.conv", index),
		     filters, square(1, 1, 0));
	return net_pool(n, GF_LAYER_AVGPOOL, x,
			net_name("features.transition%d.pool", index),
			square(2, 2, 0));
}

void model_densenet201(struct net *n)
{
	static const int blocks[] = {6, 12, 48, 32};
	size_t channels = 64, b;
	int x, k;

	x = net_conv(n, NET_INPUT, "features.conv0", 64, square(7, 2, 3));
	x = net_batchnorm(n, x, "features.norm0");
	x = net_relu(n, x, "features.relu0");
	x = net_pool(n, GF_LAYER_MAXPOOL, x, "features.pool0", square(3, 2, 1));
	for (b = 0; b < GF_ARRAY_LENGTH(blocks); b++) {
		for (k = 0; k < blocks[b]; k++) {
			char *prefix = gf_xasprintf(
				"features.denseblock%zu.denselayer%d", b + 1,
				k + 1);

			x = dense_layer(n, x, prefix);
			free(prefix);
			channels += 32;
		}
		if (b + 1 < GF_ARRAY_LENGTH(blocks)) {
			channels /= 2;
			x = transition(n, x, (int)b + 1, channels);
		}
	}
	x = net_batchnorm(n, x, "features.norm5");
	x = net_relu(n, x, "features.relu5");
	x = net_simple(n, GF_LAYER_GLOBALPOOL, x, "features.pool5");
	net_fc(n, x, "classifier", 1000);
}
