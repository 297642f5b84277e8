/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/heap.h"

/* ResNet (He et al. 2016) */

struct resnet {
	int blocks[4];
	int stages;
	size_t width;    /* of the first stage */
	bool bottleneck; /* 1x1, 3x3, 1x1 instead of two 3x3 */
};

/* conv, bn and, unless it is a block's last, relu */
static int resnet_conv(struct net *n, int x, const char *block, int index,
		       size_t filters, struct window w)
{
	x = net_conv(n, x, net_name("%s.conv%d", block, index), filters, w);
	return net_batchnorm(n, x, net_name("%s.bn%d", block, index));
}

static int resnet_block(struct net *n, int x, const char *block, size_t width,
			const struct resnet *r, size_t stride, bool project)
{
	size_t outputs = r->bottleneck ? 4 * width : width;
	int y = x, shortcut = x;

	if (r->bottleneck) {
		y = resnet_conv(n, y, block, 1, width, square(1, 1, 0));
		y = net_relu(n, y, net_name("%s.relu1", block));
		y = resnet_conv(n, y, block, 2, width, square(3, stride, 1));
		y = net_relu(n, y, net_name("%s.relu2", block));
		y = resnet_conv(n, y, block, 3, outputs, square(1, 1, 0));
	} else {
		y = resnet_conv(n, y, block, 1, width, square(3, stride, 1));
		y = net_relu(n, y, net_name("%s.relu1", block));
		y = resnet_conv(n, y, block, 2, width, square(3, 1, 1));
	}
	if (project) {
		shortcut = net_conv(n, x, net_name("%s.downsample.0", block),
				    outputs, square(1, stride, 0));
		shortcut = net_batchnorm(n, shortcut,
					 net_name("%s.downsample.1", block));
	}
	x = net_add(n, y, shortcut, net_name("%s.add", block));
	return net_relu(n, x, net_name("%s.relu", block));
}

static int resnet_stages(struct net *n, int x, const struct resnet *r)
{
	size_t width = r->width;
	int stage, k;

	for (stage = 0; stage < r->stages; stage++, width *= 2) {
		for (k = 0; k < r->blocks[stage]; k++) {
			bool first = k == 0;
			char *block = gf_xasprintf("layer%d.%d", stage + 1, k);

			x = resnet_block(n, x, block, width, r,
					 first && stage ? 2 : 1,
					 first && (stage || r->bottleneck));
			free(block);
		}
	}
	return x;
}

static void resnet_imagenet(struct net *n, const struct resnet *r)
{
	int x;

	x = net_conv(n, NET_INPUT, "conv1", 64, square(7, 2, 3));
	x = net_batchnorm(n, x, "bn1");
	x = net_relu(n, x, "relu");
	x = net_pool(n, GF_LAYER_MAXPOOL, x, "maxpool", square(3, 2, 1));
	x = resnet_stages(n, x, r);
	x = net_simple(n, GF_LAYER_GLOBALPOOL, x, "avgpool");
	net_fc(n, x, "fc", 1000);
}

void model_resnet18(struct net *n)
{
	resnet_imagenet(n, &(struct resnet){{2, 2, 2, 2}, 4, 64, false});
}

void model_resnet50(struct net *n)
{
	resnet_imagenet(n, &(struct resnet){{3, 4, 6, 3}, 4, 64, true});
}

void model_resnet152(struct net *n)
{
	resnet_imagenet(n, &(struct resnet){{3, 8, 36, 3}, 4, 64, true});
}

/* For CIFAR; projections where the shape changes (option B). */
void model_resnet20(struct net *n)
{
	int x;

	x = net_conv(n, NET_INPUT, "conv1", 16, square(3, 1, 1));
	x = net_batchnorm(n, x, "bn1");
	x = net_relu(n, x, "relu");
	x = resnet_stages(n, x, &(struct resnet){{3, 3, 3}, 3, 16, false});
	x = net_simple(n, GF_LAYER_GLOBALPOOL, x, "avgpool");
	net_fc(n, x, "fc", 10);
}
