/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <stddef.h>

#include "base/array.h"

/* AlexNet (Krizhevsky 2012, two groups), batch norm after convolutions */

static int alexnet_block(struct net *n, int x, int index, size_t filters,
			 struct window w)
{
	x = net_conv_with_bias(n, x, net_name("conv%d", index), filters, w);
	x = net_batchnorm(n, x, net_name("bn%d", index));
	return net_relu(n, x, net_name("relu%d", index));
}

void model_alexnet(struct net *n)
{
	struct window two = {5, 5, 1, 2, 2, 2}, three = {3, 3, 1, 1, 1, 2};
	int x = NET_INPUT, i;

	x = alexnet_block(n, x, 1, 96, square(11, 4, 0));
	x = net_pool(n, GF_LAYER_MAXPOOL, x, "pool1", square(3, 2, 0));
	x = alexnet_block(n, x, 2, 256, two);
	x = net_pool(n, GF_LAYER_MAXPOOL, x, "pool2", square(3, 2, 0));
	x = alexnet_block(n, x, 3, 384, square(3, 1, 1));
	x = alexnet_block(n, x, 4, 384, three);
	x = alexnet_block(n, x, 5, 256, three);
	x = net_pool(n, GF_LAYER_MAXPOOL, x, "pool5", square(3, 2, 0));
	for (i = 6; i < 8; i++) {
		x = net_fc(n, x, net_name("fc%d", i), 4096);
		x = net_relu(n, x, net_name("relu%d", i));
		x = net_dropout(n, x, net_name("drop%d", i), 0.5);
	}
	net_fc(n, x, "fc8", 1000);
}

/* VGG-16 (Simonyan, Zisserman 2015), configuration D */
void model_vgg16(struct net *n)
{
	static const struct {
		size_t filters;
		int convs;
	} blocks[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
	int x = NET_INPUT, index = 0, k;
	size_t b;

	for (b = 0; b < GF_ARRAY_LENGTH(blocks); b++) {
		for (k = 0; k < blocks[b].convs; k++) {
			x = net_conv_with_bias(
				n, x, net_name("features.%d", index++),
				blocks[b].filters, square(3, 1, 1));
			x = net_relu(n, x, net_name("features.%d", index++));
		}
		x = net_pool(n, GF_LAYER_MAXPOOL, x,
			     net_name("features.%d", index++), square(2, 2, 0));
	}
	for (k = 0; k < 2; k++) {
		x = net_fc(n, x, net_name("classifier.%d", 3 * k), 4096);
		x = net_relu(n, x, net_name("classifier.%d", 3 * k + 1));
		x = net_dropout(n, x, net_name("classifier.%d", 3 * k + 2),
				0.5);
	}
	net_fc(n, x, "classifier.6", 1000);
}

/* MNIST-MLP (Li et al. 2018): two hidden layers of 500 */
void model_mnist_mlp(struct net *n)
{
	int x = NET_INPUT, i;

	for (i = 1; i < 3; i++) {
		x = net_fc(n, x, net_name("fc%d", i), 500);
		x = net_relu(n, x, net_name("relu%d", i));
	}
	net_fc(n, x, "fc3", 10);
}

/* CIFAR100-CNN (the same): three convolutions, two fc */
void model_cifar100_cnn(struct net *n)
{
	static const size_t filters[] = {32, 32, 64};
	int x = NET_INPUT, i;

	for (i = 1; i < 4; i++) {
		x = net_conv_with_bias(n, x, net_name("conv%d", i),
				       filters[i - 1], square(5, 1, 2));
		x = net_relu(n, x, net_name("relu%d", i));
		x = net_pool(n, GF_LAYER_MAXPOOL, x, net_name("pool%d", i),
			     square(3, 2, 1));
	}
	x = net_fc(n, x, "fc1", 256);
	x = net_relu(n, x, "relu4");
	net_fc(n, x, "fc2", 100);
}

/* Its convex variant: only the last layer is trained. */
void model_cifar100_convex(struct net *n)
{
	size_t i;

	model_cifar100_cnn(n);
	for (i = 0; i + 1 < n->m.nlayers; i++)
		n->m.layers[i].frozen = n->m.layers[i].type == GF_LAYER_CONV ||
					n->m.layers[i].type == GF_LAYER_FC;
}
