/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What strangers may send to a port at which ranks meet, or leave in a folder: hellos to rank 0,
 * rank 0's word, a round's bytes, files; and what comes back in the rounds in which ranks show
 * their addresses. A pair of sockets stands for the network, so the place's own files are part of
 * this one.
 */
#include "../../lib/transport/join_port.c"
#include "../../lib/transport/cards.c"

#include <fcntl.h>
#include <sys/socket.h>

#include "harness.h"

#define RANKS 3

/* An end that answers with these bytes and then is closed. */
static int peer_of(const char *data, size_t size)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) ||
	    write(ends[1], data, size) != (ssize_t)size) {
		perror("socketpair");
		exit(1);
	}
	close(ends[1]);
	return ends[0];
}

static void begin(struct gf_join_place *p, struct gf_port *q, int rank)
{
	static char name[] = "f";
	static bool come[RANKS];
	static char peers[RANKS][GF_SOCKET_PEER];
	static int fds[RANKS];
	int i;

	*q = (struct gf_port){.fds = fds, .come = come, .peers = peers};
	*p = (struct gf_join_place){
		.name = name, .rank = rank, .ranks = RANKS, .timeout_s = 0, .port = q};
	for (i = 0; i < RANKS; i++) {
		come[i] = false;
		fds[i] = -1;
	}
	for (i = 0; i < STRANGERS; i++)
		q->strangers[i].fd = -1;
}

static bool try_stranger(const char *data, size_t size)
{
	struct gf_error err = {""};
	struct gf_join_place p;
	struct gf_port q;
	char all[RANKS * 8];
	bool welcome;
	int rc, i;

	begin(&p, &q, 0);
	take_stranger(&q, peer_of(data, size), "[::1]:1");
	rc = listen_to(&p, &q.strangers[0], &err);
	if (rc)
		harness_expect_line(&err, "f");
	welcome = q.come[1] || q.come[2];
	/* the round that follows: rank 1 shows what it has left to say */
	if (q.come[1] && collect(&p, 8, all, &err))
		harness_expect_line(&err, "f");
	for (i = 0; i < RANKS; i++)
		drop(&q.fds[i]);
	drop(&q.strangers[0].fd);
	return welcome;
}

static bool try_word(const char *data, size_t size)
{
	struct gf_error err = {""};
	struct gf_join_place p;
	struct gf_port q;
	char all[RANKS * 8];
	bool heard;
	int rc;

	begin(&p, &q, 1);
	q.fds[0] = peer_of(data, size);
	rc = hear(&p, gf_clock_s(), &heard, &err);
	if (rc && strnlen(err.text, sizeof(err.text)) == sizeof(err.text))
		harness_fail("a reason", "without an end");
	if (!rc)
		rc = gf_socket_read(q.fds[0], all, sizeof(all), gf_clock_s());
	drop(&q.fds[0]);
	return !rc;
}

static bool try_left(const char *data, size_t size)
{
	struct gf_join_place p = {.folder = true, .ranks = RANKS};
	struct gf_join_key key;
	char *path = gf_xstrdup(harness_put("rank-0", data, size)), **places;
	size_t i;

	*strrchr(path, '/') = '\0';
	p.name = path;
	places = gf_join_find(&p, &key);
	for (i = 0; places[i]; i++)
		free(places[i]);
	free(places);
	free(path);
	return i > 0;
}

/* --- addresses ------------------------------------------------------------ */

#define ADDRESS_BYTES 24

static void address_of(int rank, char address[ADDRESS_BYTES])
{
	memset(address, 'a' + rank, ADDRESS_BYTES);
}

/* The honest answer of a round, into which the input strikes: 3 bytes each, a place and what is
 * added there. */
struct answer {
	const char *data;
	size_t size;
	int rounds;
};

static int answer(void *ctx, const void *send, size_t size_bytes, void *recv, struct gf_error *err)
{
	struct answer *a = ctx;
	size_t i, bytes = RANKS * size_bytes, half = a->size / 2;
	const char *from = a->data + (a->rounds ? half : 0);
	unsigned char *all = recv;
	struct card card = {.ranks = RANKS, .size_bytes = GF_DIGEST_BYTES + ADDRESS_BYTES};
	char sealed[GF_DIGEST_BYTES + ADDRESS_BYTES];
	int rank;

	(void)err;
	for (rank = 0; rank < RANKS; rank++) {
		const struct gf_join as = {.ranks = RANKS};
		char *address = sealed + GF_DIGEST_BYTES;

		address_of(rank, address);
		seal(&as, rank, address, ADDRESS_BYTES, (unsigned char *)sealed);
		memcpy(all + (size_t)rank * size_bytes,
		       rank == 1   ? send
		       : a->rounds ? (void *)sealed
				   : (void *)&card,
		       a->rounds ? sizeof(sealed) : sizeof(card));
	}
	for (i = 0; i + 3 <= half; i += 3)
		all[(size_t)((unsigned char)from[i] << 8 | (unsigned char)from[i + 1]) % bytes] +=
			(unsigned char)from[i + 2];
	a->rounds++;
	return 0;
}

static bool try_cards(const char *data, size_t size)
{
	struct answer a = {data, size, 0};
	const struct gf_join join = {.rank = 1, .ranks = RANKS, .allgather = answer, .ctx = &a};
	struct gf_cards cards = {0};
	struct gf_error err = {""};
	char own[ADDRESS_BYTES];
	int rank, rc;

	address_of(1, own);
	rc = gf_cards_show(&join, 0, own, sizeof(own), &cards, &err);
	if (rc)
		harness_expect_line(&err, NULL);
	for (rank = 0; rank < RANKS && !rc; rank++) {
		address_of(rank, own);
		if (memcmp(gf_cards_address(&cards, rank), own, sizeof(own)))
			harness_fail("an address", "is another, and believed");
	}
	free(cards.sealed);
	return !rc;
}

static bool try_join(const char *data, size_t size, struct gf_rng *rng)
{
	bool accepted = try_stranger(data, size);

	(void)rng;
	accepted |= try_word(data, size);
	accepted |= try_left(data, size);
	accepted |= try_cards(data, size);
	return accepted;
}

const struct harness harness = {.most_bytes = 2048, .try = try_join};
