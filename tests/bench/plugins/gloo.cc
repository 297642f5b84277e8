/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gloo as a contestant (plugin.h):
 *	g++ -shared -fPIC -O2 -o gloo.so gloo.cc -lgloo
 * Ranks find each other through files in the store, and meet over TCP.
 */
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>

extern "C" {
#include "plugin.h"
}

struct gloo_peer {
	std::shared_ptr<gloo::rendezvous::Context> context;
	gloo::AllreduceOptions::Algorithm algorithm;
	uint32_t tag = 0;
};

static const char *const ways[] = {"ring", "bcube", nullptr};

static void *open_peer(const struct gf_peer_place *place, int way)
{
	try {
		if (!place->store)
			throw std::runtime_error("want a store (-d)");
		gloo::transport::tcp::attr attr(place->address);
		auto peer = std::make_unique<gloo_peer>();
		gloo::rendezvous::FileStore files(place->store);
		gloo::rendezvous::PrefixStore own(ways[way], files);
		auto device = gloo::transport::tcp::CreateDevice(attr);

		peer->algorithm = way ? gloo::AllreduceOptions::Algorithm::BCUBE
				      : gloo::AllreduceOptions::Algorithm::RING;
		peer->context = std::make_shared<gloo::rendezvous::Context>(
			place->rank, place->ranks);
		peer->context->connectFullMesh(own, device);
		return peer.release();
	} catch (const std::exception &e) {
		fprintf(stderr, "gloo: %s\n", e.what());
		return nullptr;
	}
}

static int run(void *state, float *data, size_t count)
{
	auto peer = static_cast<gloo_peer *>(state);

	try {
		gloo::AllreduceOptions options(peer->context);

		options.setAlgorithm(peer->algorithm);
		options.setOutput(data, count);
		options.setReduceFunction(
			[](void *c, const void *a, const void *b, size_t n) {
				gloo::sum<float>(c, a, b, n);
			});
		options.setTag(peer->tag++);
		gloo::allreduce(options);
		return 0;
	} catch (const std::exception &e) {
		fprintf(stderr, "gloo: %s\n", e.what());
		return -1;
	}
}

static void close_peer(void *state)
{
	delete static_cast<gloo_peer *>(state);
}

extern "C" const struct gf_peer gf_peer = {
	"gloo", ways, open_peer, nullptr, run, nullptr, close_peer,
};
