/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_TRANSPORT_H
#define GF_TESTS_TRANSPORT_H

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/heap.h"
#include "test.h"
#include "transport/comm.h"

/*
 * What every transport promises, for any number of ranks: called by every rank of a communicator,
 * over threads in test_comm.c and over MPI in test_mpi.c.
 */
static bool names_its_own = true; /* ranks and channels, in messages */

static unsigned char pattern(int rank, size_t i)
{
	return (unsigned char)(rank * 31 + (int)(i * 7 + i / 256));
}

/* Memory of a broken communicator stays: messages may yet touch it. */
static inline void check_kept(struct gf_comm *c)
{
	const size_t size = (size_t)40 << 20; /* malloc would unmap it */
	struct gf_error err = {""};
	void *data;

	EXPECT(!c->ops->buffer_alloc(c, size, &data, &err), "%s", err.text);
	c->broken = true;
	c->ops->buffer_free(c, data);
	EXPECT(!msync(data, 4096, MS_ASYNC), "rank %d: it is gone", c->rank);
	c->broken = false;
	c->ops->buffer_free(c, data);
}

/* Each rank to its right neighbour; the receive posted first or last. */
static void check_shift(struct gf_comm *c, size_t size, bool receive_first)
{
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks;
	unsigned char *out = gf_xmalloc(size + 1), *in = gf_xmalloc(size + 1);
	uint64_t tag = gf_tag(5, 77);
	struct gf_comm_request *send, *receive;
	struct gf_error err = {""};
	size_t i, wrong = 0;
	int rc = 0;

	for (i = 0; i < size; i++)
		out[i] = pattern(c->rank, i);
	memset(in, 0xee, size + 1);
	if (receive_first)
		rc |= c->ops->irecv(c, left, tag, in, size, &receive, &err);
	rc |= c->ops->isend(c, right, tag, out, size, &send, &err);
	if (!receive_first)
		rc |= c->ops->irecv(c, left, tag, in, size, &receive, &err);
	EXPECT(!rc, "rank %d, %zu bytes: %s", c->rank, size, err.text);
	if (!rc) {
		rc |= gf_comm_wait(c, receive, &err);
		rc |= gf_comm_wait(c, send, &err);
		EXPECT(!rc, "rank %d, %zu bytes: %s", c->rank, size, err.text);
	}
	for (i = 0; i < size; i++)
		wrong += in[i] != pattern(left, i);
	EXPECT(!wrong && in[size] == 0xee, "rank %d: %zu of %zu bytes", c->rank, wrong, size);
	free(out);
	free(in);
}

/* Same tag: in order. Other tags: whichever is asked for. */
static void check_matching(struct gf_comm *c)
{
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks;
	static const uint32_t sent[4] = {10, 11, 12, 13};
	static const uint32_t match[4] = {0, 1, 1, 0};
	static const uint32_t asked[4] = {1, 0, 1, 0};
	static const uint32_t want[4] = {11, 10, 12, 13};
	struct gf_comm_request *send[4], *receive;
	struct gf_error err = {""};
	uint32_t got;
	int i, rc = 0;

	for (i = 0; i < 4; i++)
		rc |= c->ops->isend(c, right, gf_tag(9, match[i]), &sent[i], sizeof(sent[i]),
				    &send[i], &err);
	for (i = 0; i < 4 && !rc; i++) {
		rc |= c->ops->irecv(c, left, gf_tag(9, asked[i]), &got, sizeof(got), &receive,
				    &err);
		rc |= gf_comm_wait(c, receive, &err);
		EXPECT(got == want[i], "message %d: %u", i, got);
	}
	for (i = 0; i < 4 && !rc; i++)
		rc |= gf_comm_wait(c, send[i], &err);
	EXPECT(!rc, "%s", err.text);
}

/* From rank 0 to the last, which wants another size. */
static void check_mismatch(struct gf_comm *c, size_t sent, size_t wanted)
{
	char *out = gf_xcalloc(sent + 1, 1), *text;
	char *in = gf_xcalloc(wanted + 1, 1);
	struct gf_comm_request *send, *receive;
	struct gf_error err = {""};
	int rc;

	if (c->rank == 0 && c->ops->isend(c, c->ranks - 1, gf_tag(7, 3), out, sent, &send, &err))
		EXPECT(0, "%s", err.text);
	if (c->rank == c->ranks - 1) {
		rc = c->ops->irecv(c, 0, gf_tag(7, 3), in, wanted, &receive, &err);
		rc = rc ? rc : gf_comm_wait(c, receive, &err);
		EXPECT(rc == -EMSGSIZE, "%zu for %zu: %d", sent, wanted, rc);
		text = gf_xasprintf(
			"message from rank 0, channel 7, match 3: want %zu bytes, got %zu", wanted,
			sent);
		if (names_its_own)
			EXPECT_TEXT(err.text, text);
		free(text);
	}
	if (c->rank == 0)
		EXPECT(!gf_comm_wait(c, send, &err), "%s", err.text);
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	free(out);
	free(in);
}

static void check_collectives(struct gf_comm *c)
{
	size_t sizes[] = {0, 1, 8, 1000, 5000}, i, k;
	unsigned char *data, *all;
	struct gf_error err = {""};
	int root, rank;

	for (i = 0; i < GF_ARRAY_LENGTH(sizes); i++) {
		data = gf_xmalloc(sizes[i] + 1);
		all = gf_xmalloc(sizes[i] * (size_t)c->ranks + 1);
		for (root = 0; root < c->ranks; root++) {
			for (k = 0; k < sizes[i]; k++)
				data[k] = pattern(c->rank, k);
			EXPECT(!gf_comm_bcast(c, root, data, sizes[i], &err), "%s", err.text);
			for (k = 0; k < sizes[i]; k++)
				if (data[k] != pattern(root, k))
					break;
			EXPECT(k == sizes[i], "bcast %zu: at %zu", sizes[i], k);
		}
		for (k = 0; k < sizes[i]; k++)
			data[k] = pattern(c->rank, k);
		EXPECT(!gf_comm_allgather(c, data, sizes[i], all, &err), "%s", err.text);
		for (rank = 0; rank < c->ranks; rank++)
			for (k = 0; k < sizes[i]; k++)
				if (all[(size_t)rank * sizes[i] + k] != pattern(rank, k)) {
					EXPECT(0, "allgather %zu: %d, %zu", sizes[i], rank, k);
					break;
				}
		EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
		free(data);
		free(all);
	}
}

/* Rank r says r times "r": rank 0 says nothing. */
static void check_texts(struct gf_comm *c)
{
	size_t lengths[64], length = (size_t)c->rank, i, at;
	char own[64], *all, *text;
	struct gf_error err = {""};
	int root, rank;

	memset(own, 'a' + c->rank % 26, sizeof(own));
	for (root = 0; root < c->ranks; root++) {
		EXPECT(!gf_comm_gather_text(c, root, own, length, &all, lengths, &err), "%s",
		       err.text);
		EXPECT(!all == (c->rank != root), "only on the root");
		if (c->rank == root) {
			for (rank = 0, at = 0; rank < c->ranks; rank++)
				for (i = 0; i < lengths[rank]; i++, at++)
					EXPECT(all[at] == 'a' + rank % 26, "%zu of rank %d", i,
					       rank);
			EXPECT(all[at] == '\0' && strlen(all) == at, "end");
		}
		free(all);

		text = c->rank == root ? own : NULL;
		length = c->rank == root ? 5 : 99;
		EXPECT(!gf_comm_bcast_text(c, root, &text, &length, &err), "%s", err.text);
		EXPECT(length == 5 && text[0] == 'a' + root % 26 &&
			       (c->rank == root || strlen(text) == 5),
		       "text of rank %d", root);
		if (c->rank != root)
			free(text);
		length = (size_t)c->rank;
	}
}

static void check_agreement(struct gf_comm *c)
{
	int bad = c->ranks - 1, rc;
	struct gf_error err = {""};
	char *text, *want;

	EXPECT(!gf_comm_agree(c, 0, &err), "%s", err.text);
	if (c->rank == bad)
		rc = gf_error_set(&err, -ENOENT, "x.json: gone");
	else
		rc = 0;
	EXPECT(gf_comm_agree(c, rc, &err) == -ENOENT, "the same on all");
	want = gf_xasprintf(c->ranks > 1 ? "rank %d: x.json: gone" : "x.json: gone", bad);
	EXPECT_TEXT(err.text, want);
	free(want);
	EXPECT(gf_comm_agree(c, c->rank == bad ? -EIO : 0, NULL) == -EIO, "without words");

	EXPECT(!gf_comm_same_text(c, "plan", "one", &err), "%s", err.text);
	text = c->rank == bad && bad > 0 ? "three" : "one";
	rc = gf_comm_same_text(c, "plan", text, &err);
	EXPECT(rc == (bad > 0 ? -EINVAL : 0), "%d", rc);
	if (bad > 0) {
		want = gf_xasprintf("plan: rank 0 has one, rank %d has three", bad);
		EXPECT_TEXT(err.text, want);
		free(want);
	}
}

/* Two sums of the library at once. */
static void check_library(struct gf_comm *c)
{
	struct gf_element sum = gf_element_number(GF_F32, GF_OP_SUM);
	float a[1000], b[3];
	struct gf_comm_request *first, *second;
	struct gf_error err = {""};
	int rc = 0, p = c->ranks;
	size_t i;

	for (i = 0; i < 1000; i++)
		a[i] = (float)c->rank + (float)i;
	for (i = 0; i < 3; i++)
		b[i] = (float)i;
	rc |= c->ops->iallreduce(c, a, 1000, &sum, &first, &err);
	rc |= c->ops->iallreduce(c, b, 3, &sum, &second, &err);
	EXPECT(!rc, "%s", err.text);
	rc |= gf_comm_wait(c, second, &err);
	rc |= gf_comm_wait(c, first, &err);
	EXPECT(!rc, "%s", err.text);
	for (i = 0; i < 1000; i++)
		EXPECT(a[i] == (float)(p * (p - 1) / 2) + (float)(p * (int)i), "element %zu: %g", i,
		       a[i]);
	for (i = 0; i < 3; i++)
		EXPECT(b[i] == (float)(p * (int)i), "element %zu", i);
}

static void check_probe(struct gf_comm *c)
{
	int right = (c->rank + 1) % c->ranks;
	int left = (c->rank + c->ranks - 1) % c->ranks, peer = -1, got = -1;
	uint64_t tag = gf_tag(GF_CHANNEL_LIVENESS, 0);
	struct gf_comm_request *send, *receive;
	struct gf_error err = {""};
	int rc;

	EXPECT(c->ops->probe(c, tag, &peer, &err) == 0, "nothing yet");
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	EXPECT(!c->ops->isend(c, right, tag, &c->rank, sizeof(int), &send, &err), "%s", err.text);
	while (!(rc = c->ops->probe(c, tag, &peer, &err)))
		;
	EXPECT(rc == 1 && peer == left, "rank %d: %d from %d", c->rank, rc, peer);
	EXPECT(!c->ops->irecv(c, left, tag, &got, sizeof(int), &receive, &err), "%s", err.text);
	EXPECT(!gf_comm_wait(c, receive, &err) && got == left, "%s", err.text);
	EXPECT(!gf_comm_wait(c, send, &err), "%s", err.text);
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
}

/* A receive that is given up does not catch what comes later. */
static void check_cancel(struct gf_comm *c)
{
	struct gf_comm_request *receive;
	struct gf_error err = {""};
	char unused[8];

	EXPECT(!c->ops->irecv(c, c->rank, gf_tag(5, 77), unused, sizeof(unused), &receive, &err),
	       "%s", err.text);
	c->ops->cancel(c, receive);
	check_shift(c, sizeof(unused), true);
}

static void check_buffers(struct gf_comm *c)
{
	struct gf_error err = {""};
	size_t sizes[] = {0, 5, 4096, (size_t)5 << 20}, i;
	void *data;

	for (i = 0; i < GF_ARRAY_LENGTH(sizes); i++) {
		EXPECT(!c->ops->buffer_alloc(c, sizes[i], &data, &err), "%s", err.text);
		EXPECT((uintptr_t)data % 4096 == 0, "alignment");
		EXPECT(sizes[i] == 0 || ((char *)data)[sizes[i] - 1] == 0, "zeroed");
		c->ops->buffer_free(c, data);
	}
	EXPECT(c->ops->buffer_alloc(c, SIZE_MAX / 2 + 1, &data, &err) == -ENOMEM, "too much");
}

static void check_sizes(struct gf_comm *c)
{
	size_t sizes[] = {0, 1, 4096, 100000, 999, 1000, 1001, 2000, 2001, 5000}, i;

	for (i = 0; i < GF_ARRAY_LENGTH(sizes); i++) {
		check_shift(c, sizes[i], true);
		check_shift(c, sizes[i], false);
	}
}

static void check_transport(struct gf_comm *c)
{
	check_sizes(c);
	check_matching(c);
	check_mismatch(c, 12, 16);
	check_mismatch(c, 16, 12);
	check_mismatch(c, 0, 12);
	check_mismatch(c, 900, 500);
	check_collectives(c);
	check_texts(c);
	check_agreement(c);
	if (c->ops->iallreduce)
		check_library(c);
	check_probe(c);
	check_cancel(c);
	check_buffers(c);
}

#endif
