/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gloo's all-reduce behind three C functions, for allreduce_peers to load:
 *	g++ -shared -fPIC -O2 -o gloo_peer.so gloo_peer.cc -lgloo
 * Ranks find each other through files in `store`, and meet over TCP on
 * `address`.
 */
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <exception>
#include <memory>

struct gloo_peer {
	std::shared_ptr<gloo::rendezvous::Context> context;
	uint32_t tag = 0;
};

extern "C" struct gloo_peer *gloo_peer_open(const char *store, int rank,
					    int ranks, const char *address)
{
	try {
		gloo::transport::tcp::attr attr(address);
		auto peer = new gloo_peer;
		gloo::rendezvous::FileStore files(store);
		auto device = gloo::transport::tcp::CreateDevice(attr);

		peer->context = std::make_shared<gloo::rendezvous::Context>(
			rank, ranks);
		peer->context->connectFullMesh(files, device);
		return peer;
	} catch (const std::exception &e) {
		fprintf(stderr, "gloo: %s\n", e.what());
		return nullptr;
	}
}

/* algorithm: 1 ring, 2 bcube. 0, or -1 after saying why. */
extern "C" int gloo_peer_sum(struct gloo_peer *peer, int algorithm, float *data,
			     size_t count)
{
	try {
		gloo::AllreduceOptions options(peer->context);

		options.setAlgorithm(
			(gloo::AllreduceOptions::Algorithm)algorithm);
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

extern "C" void gloo_peer_close(struct gloo_peer *peer)
{
	delete peer;
}
