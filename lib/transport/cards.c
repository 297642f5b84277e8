/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/ucx_state.h"

#include <inttypes.h>
#include <string.h>

#include "base/heap.h"

/* UCX's have some hundred bytes, and some for each device. */
#define MOST_BYTES ((size_t)1 << 20)

struct card {
	int32_t rc;
	uint32_t ranks;
	uint64_t size_bytes; /* of the address under its seal */
	struct gf_error reason;
};

static void seal(const struct gf_join *join, int rank, const char *address, uint64_t size_bytes,
		 unsigned char out[GF_DIGEST_BYTES])
{
	const uint64_t head[] = {join->key[0], join->key[1], (uint64_t)rank, (uint64_t)join->ranks,
				 size_bytes};
	struct gf_digest d;

	gf_digest_init(&d);
	gf_digest_add(&d, head, sizeof(head));
	gf_digest_add(&d, address, size_bytes);
	gf_digest_end(&d, out);
}

/* size_bytes: of this rank's own. */
static int check_card(const struct gf_join *join, const struct card *card, int rank,
		      uint64_t size_bytes, struct gf_error *err)
{
	if (card->rc)
		return gf_error_set(err, card->rc < 0 ? card->rc : -EPROTO, "rank %d: %.*s", rank,
				    (int)sizeof(card->reason.text) - 1, card->reason.text);
	if (card->ranks != (uint32_t)join->ranks)
		return gf_error_set(err, -EINVAL,
				    "rank %d joins %" PRIu32 " ranks, rank %d joins %d", rank,
				    card->ranks, join->rank, join->ranks);
	if (card->size_bytes <= GF_DIGEST_BYTES || card->size_bytes > MOST_BYTES)
		return gf_error_set(err, -EPROTO,
				    "rank %d: want an address of at most %zu bytes, got %" PRIu64,
				    rank, MOST_BYTES, card->size_bytes);
	if (rank == join->rank && card->size_bytes != size_bytes)
		return gf_error_set(err, -EPROTO,
				    "rank %d: want its own card back, got another: something else "
				    "than rank 0 answers",
				    rank);
	return 0;
}

static int check_seal(const struct gf_join *join, const char *sealed, int rank, uint64_t size_bytes,
		      struct gf_error *err)
{
	unsigned char want[GF_DIGEST_BYTES];

	seal(join, rank, sealed + sizeof(want), size_bytes - sizeof(want), want);
	return memcmp(want, sealed, sizeof(want)) == 0
		       ? 0
		       : gf_error_set(
				 err, -EPROTO,
				 "rank %d: want the address that it has sealed, got other bytes",
				 rank);
}

int gf_cards_show(const struct gf_join *join, int rc, const void *address, size_t size_bytes,
		  struct gf_cards *out, struct gf_error *err)
{
	const uint64_t own_bytes = GF_DIGEST_BYTES + size_bytes;
	struct card own = {rc, (uint32_t)join->ranks, own_bytes, {""}};
	GF_FREED struct card *cards = gf_xcalloc((size_t)join->ranks, sizeof(*cards));
	struct gf_cards got = {0};
	GF_FREED char *sealed = NULL;

	if (rc && err)
		own.reason = *err;
	rc = join->allgather(join->ctx, &own, sizeof(own), cards, err);
	for (int rank = 0; rank < join->ranks && !rc; rank++) {
		rc = check_card(join, &cards[rank], rank, own_bytes, err);
		if (!rc && cards[rank].size_bytes > got.size_bytes)
			got.size_bytes = cards[rank].size_bytes;
	}
	if (rc)
		goto out;
	sealed = gf_xcalloc(1, got.size_bytes);
	memcpy(sealed + GF_DIGEST_BYTES, address, size_bytes);
	seal(join, join->rank, address, size_bytes, (unsigned char *)sealed);
	got.sealed = gf_xcalloc((size_t)join->ranks, got.size_bytes);
	rc = join->allgather(join->ctx, sealed, got.size_bytes, got.sealed, err);
	for (int rank = 0; rank < join->ranks && !rc; rank++)
		rc = check_seal(join, got.sealed + (size_t)rank * got.size_bytes, rank,
				cards[rank].size_bytes, err);
	if (!rc)
		*out = got;
	else
		free(got.sealed);
out:
	return rc;
}
