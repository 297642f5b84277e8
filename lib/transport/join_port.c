/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks meet at a port, on which rank 0 listens: a star. A rank says hello, which rank 0 echoes at
 * once, and is answered when all have come; then each round goes to rank 0 and back.
 * Anything may connect to a port: bytes that are no hello end that connection alone, and a
 * connection that says nothing has its place for a while only. Both are counted, for the messages
 * of ranks that fail beside them.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/timeout.h"
#include "transport/join_state.h"

#define NAP_S 2e-3
/* The most strangers at once. */
#define STRANGERS 64
/* The kernel's. */
#define MOST_ERRNO 4095
/* More than that is no blob. */
#define BLOB_MOST_BYTES ((size_t)1 << 20)
/* More ranks than that are counted, not listed. */
#define LISTED 8

static const char magic[8] = "gfport 2";

struct hello {
	char magic[8];
	uint32_t rank, ranks;
	struct gf_join_key key; /* of a folder; else zeros */
};

/* Rank 0's word, before what follows. */
struct verdict {
	char magic[8];
	int32_t rc, unused;
	struct gf_error reason;
};

struct stranger {
	int fd; /* -1: none */
	char peer[GF_SOCKET_PEER];
	double since_s;
	size_t got_bytes;
	struct hello hello;
};

struct gf_port {
	int *fds;                      /* rank 0: of each rank; else the first is rank 0's; -1 */
	char (*peers)[GF_SOCKET_PEER]; /* rank 0: where each rank is */
	bool *come;
	int listeners[GF_SOCKET_LISTENERS], nlisteners;
	struct gf_join_key key;
	bool announced; /* in the folder */
	struct stranger strangers[STRANGERS];
	/* connections that were no rank's, and where the last came from */
	size_t others;
	char other[GF_SOCKET_PEER];
};

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void count_other(struct gf_port *q, const char *peer)
{
	q->others++;
	snprintf(q->other, sizeof(q->other), "%s", peer);
}

/* What may be behind a failure. */
static int blame(const struct gf_port *q, int rc, struct gf_error *err)
{
	const struct gf_error why = err ? *err : (struct gf_error){""};

	return !rc || !q->others ? rc
				 : gf_error_set(err, rc,
						"%s; connections to the port that were no rank's: "
						"%zu (the last: %s)",
						why.text, q->others, q->other);
}

/* Text says "rank 2 has not come" or "ranks 2, 5 have not come"; -ETIMEDOUT. come: per rank. */
static int not_come(const struct gf_join_place *p, const bool *come, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text t = {0};
	int rank, missing = 0, listed = 0;

	for (rank = 0; rank < p->ranks; rank++)
		missing += !come[rank];
	for (rank = 0; rank < p->ranks && listed < LISTED; rank++)
		if (!come[rank])
			gf_text_addf(&t, "%s %d", listed++ ? "," : "", rank);
	if (missing > LISTED)
		gf_text_addf(&t, " and %d more", missing - LISTED);
	gf_text_addf(&t, missing > 1 ? " have" : " has");
	gf_error_set(err, 0, "%s: waited %g s, and %s%s not come", p->name, p->timeout_s,
		     missing > 1 ? "ranks" : "rank", t.data);
	return -ETIMEDOUT;
}

/* --- rank 0 ------------------------------------------------------------- */

static void tell_one(int fd, int rc, const struct gf_error *why, double until_s)
{
	struct verdict v = {.rc = rc};

	memcpy(v.magic, magic, sizeof(magic));
	if (rc && why)
		v.reason = *why;
	/* a rank that cannot be told finds out by itself */
	(void)gf_socket_write(fd, &v, sizeof(v), until_s);
}

/* All that have come learn how it stands. */
static int tell(const struct gf_join_place *p, int rc, const struct gf_error *why)
{
	double until_s = gf_clock_s() + GF_TIMEOUT_MEETING_S;

	for (int rank = 1; rank < p->ranks; rank++)
		if (p->port->fds[rank] >= 0)
			tell_one(p->port->fds[rank], rc, why, until_s);
	return rc;
}

/* A hello that is whole. */
static int welcome(const struct gf_join_place *p, struct stranger *s, struct gf_error *err)
{
	const struct hello *h = &s->hello;
	struct gf_error why;
	int *fd, rc;

	if (h->ranks != (uint32_t)p->ranks) {
		rc = gf_error_set(&why, -EINVAL,
				  "%s: rank %u has come with %u ranks, rank 0 with %d: it is at %s",
				  p->name, h->rank, h->ranks, p->ranks, s->peer);
		tell_one(s->fd, rc, &why, 0);
		drop(&s->fd);
		if (err)
			*err = why;
		return rc;
	}
	fd = &p->port->fds[h->rank];
	if (*fd >= 0 && !gf_socket_gone(*fd)) {
		rc = gf_error_set(&why, -EBUSY,
				  "%s: another process has come as rank %u: it is at %s", p->name,
				  h->rank, p->port->peers[h->rank]);
		tell_one(s->fd, rc, &why, 0);
		count_other(p->port, s->peer);
		drop(&s->fd);
		return 0;
	}
	drop(fd);
	if (gf_socket_write(s->fd, h, sizeof(*h), 0)) {
		drop(&s->fd);
		return 0;
	}
	*fd = s->fd;
	memcpy(p->port->peers[h->rank], s->peer, sizeof(s->peer));
	p->port->come[h->rank] = true;
	s->fd = -1;
	return 0;
}

static bool is_hello(const struct gf_port *q, const struct hello *h)
{
	return memcmp(h->magic, magic, sizeof(magic)) == 0 && h->rank > 0 && h->rank < h->ranks &&
	       h->ranks <= INT32_MAX && memcmp(&h->key, &q->key, sizeof(q->key)) == 0;
}

/* Reads on. What says no hello goes. */
static int listen_to(const struct gf_join_place *p, struct stranger *s, struct gf_error *err)
{
	size_t left_bytes = sizeof(s->hello) - s->got_bytes;
	ssize_t n = gf_socket_some(s->fd, (char *)&s->hello + s->got_bytes, left_bytes);

	s->got_bytes += n > 0 ? (size_t)n : 0;
	if (s->got_bytes == sizeof(s->hello) && is_hello(p->port, &s->hello))
		return welcome(p, s, err);
	if (n < 0 || s->got_bytes == sizeof(s->hello) ||
	    gf_clock_s() - s->since_s > GF_TIMEOUT_HELLO_S) {
		count_other(p->port, s->peer);
		drop(&s->fd);
	}
	return 0;
}

/* In place of none, or of the one that has been silent longest. */
static void take_stranger(struct gf_port *q, int fd, const char *peer)
{
	struct stranger *s = &q->strangers[0];

	for (int i = 1; i < STRANGERS && s->fd >= 0; i++)
		if (q->strangers[i].fd < 0 || q->strangers[i].since_s < s->since_s)
			s = &q->strangers[i];
	if (s->fd >= 0)
		count_other(q, s->peer);
	drop(&s->fd);
	*s = (struct stranger){.fd = fd, .since_s = gf_clock_s()};
	snprintf(s->peer, sizeof(s->peer), "%s", peer);
}

/* Those that wait, but no more than have a place: a flood leaves a rank the time to say its
 * hello. */
static bool take_strangers(struct gf_port *q)
{
	char peer[GF_SOCKET_PEER];
	int i, n, fd, all = 0;

	for (i = 0; i < q->nlisteners; i++)
		for (n = 0; n < STRANGERS; n++, all++) {
			fd = gf_socket_accept(q->listeners[i], peer);
			if (fd < 0)
				break;
			take_stranger(q, fd, peer);
		}
	return all > 0;
}

/* One that was not answered in time has gone, and comes again. */
static bool all_come(const struct gf_join_place *p)
{
	struct gf_port *q = p->port;

	for (int rank = 1; rank < p->ranks; rank++) {
		q->come[rank] &= q->fds[rank] >= 0 && !gf_socket_gone(q->fds[rank]);
		if (!q->come[rank])
			return false;
	}
	return true;
}

/* A failure waits a little: ranks that come later learn it, too. */
static int await_all(const struct gf_join_place *p, struct gf_error *err)
{
	struct gf_port *q = p->port;
	double until_s = gf_clock_s() + p->timeout_s;
	int i, one, rc;

	q->come[0] = true;
	rc = gf_socket_listen(p->folder ? NULL : p->name, q->listeners, err);
	q->nlisteners = rc > 0 ? rc : 0;
	if (rc > 0 && p->folder) {
		rc = gf_join_announce(p, q->listeners[0], &q->key, err);
		q->announced = !rc;
	}
	if (rc < 0)
		return rc;
	for (rc = 0; !all_come(p);) {
		if (!take_strangers(q))
			gf_clock_sleep(NAP_S);
		for (i = 0; i < STRANGERS; i++) {
			if (q->strangers[i].fd < 0)
				continue;
			one = listen_to(p, &q->strangers[i], rc ? NULL : err);
			if (one && !rc)
				until_s = gf_clock_s() + GF_TIMEOUT_MEETING_S;
			rc = rc ?: one;
		}
		if (gf_clock_s() < until_s)
			continue;
		rc = rc ?: blame(p->port, not_come(p, q->come, err), err);
		break;
	}
	return tell(p, rc, err);
}

/* All ranks' blobs come in, in rank order. */
static int collect(const struct gf_join_place *p, size_t size_bytes, char *all,
		   struct gf_error *err)
{
	double until_s = gf_clock_s() + p->timeout_s;
	struct gf_port *q = p->port;
	uint64_t size = 0;
	int rank, rc;

	for (rank = 1; rank < p->ranks; rank++) {
		int fd = q->fds[rank];

		rc = gf_socket_read(fd, &size, sizeof(size), until_s);
		if (!rc && size != size_bytes)
			return gf_error_set(
				err, -EMSGSIZE,
				"%s: rank %d shows %llu bytes, rank 0 shows %zu: it is at %s",
				p->name, rank, (unsigned long long)size, size_bytes,
				q->peers[rank]);
		rc = rc ?: gf_socket_read(fd, all + (size_t)rank * size_bytes, size_bytes, until_s);
		if (rc)
			return gf_error_errno(err, rc, "%s: rank %d, at %s", p->name, rank,
					      q->peers[rank]);
	}
	return 0;
}

static int spread(const struct gf_join_place *p, size_t size_bytes, const char *all,
		  struct gf_error *err)
{
	double until_s = gf_clock_s() + p->timeout_s;
	int rank, rc = 0;

	for (rank = 1; rank < p->ranks && !rc; rank++) {
		rc = gf_socket_write(p->port->fds[rank], all, (size_t)p->ranks * size_bytes,
				     until_s);
		if (rc)
			gf_error_errno(err, rc, "%s: rank %d", p->name, rank);
	}
	return rc;
}

/* --- the other ranks ---------------------------------------------------- */

/* *heard: rc is rank 0's word, or something else's. */
static int hear(const struct gf_join_place *p, double until_s, bool *heard, struct gf_error *err)
{
	struct verdict v;
	int rc = gf_socket_read(p->port->fds[0], &v, sizeof(v), until_s);

	*heard = !rc;
	if (rc)
		return gf_error_errno(err, rc, "%s: rank 0", p->name);
	if (memcmp(v.magic, magic, sizeof(magic)) != 0 || v.rc > 0 || v.rc < -MOST_ERRNO)
		return gf_error_set(err, -EPROTO, "%s: something else than rank 0 answers",
				    p->name);
	v.reason.text[sizeof(v.reason.text) - 1] = '\0';
	return v.rc ? gf_error_set(err, v.rc, "%s", v.reason.text) : 0;
}

/* Connects to a place, says hello and hears it again: there is rank 0. */
static int greet(const struct gf_join_place *p, const char *place, const struct hello *h,
		 double until_s)
{
	double soon_s = fmin(until_s, gf_clock_s() + GF_TIMEOUT_ECHO_S);
	struct hello echo;
	int *fd = &p->port->fds[0], rc;

	drop(fd);
	rc = *fd = gf_socket_connect(place, p->folder ? soon_s : until_s);
	if (rc < 0)
		return rc;
	/* until it turns out to be rank 0's */
	count_other(p->port, place);
	rc = gf_socket_write(*fd, h, sizeof(*h), until_s);
	/* a word comes in place of the echo if rank 0 refuses this one */
	rc = rc ?: gf_socket_peek(*fd, &echo, sizeof(echo), soon_s);
	if (!rc && memcmp(&echo, h, sizeof(echo)) == 0) {
		rc = gf_socket_read(*fd, &echo, sizeof(echo), until_s);
		p->port->others--;
	}
	return rc;
}

/* Tries each place at which rank 0 may be, once; returns the last attempt's. */
static int seek(const struct gf_join_place *p, struct hello *h, double until_s)
{
	char *named[] = {p->name, NULL};
	char **places = p->folder ? gf_join_find(p, &h->key) : named;
	int rc = -ENOENT;

	for (size_t i = 0; places[i] && rc; i++)
		rc = greet(p, places[i], h, until_s);
	for (size_t i = 0; p->folder && places[i]; i++)
		free(places[i]);
	if (p->folder)
		free(places);
	return rc;
}

/* Rank 0 may start later, and may have no place for a while. */
static int say_hello(const struct gf_join_place *p, struct gf_error *err)
{
	struct hello h = {.rank = (uint32_t)p->rank, .ranks = (uint32_t)p->ranks};
	double until_s = gf_clock_s() + p->timeout_s;
	bool heard = false, *come = p->port->come;
	int rc = 0, found = -ENOENT;

	memcpy(h.magic, magic, sizeof(magic));
	while (!heard && gf_clock_s() < until_s) {
		found = seek(p, &h, until_s);
		/* rank 0 has perhaps come later: its word is waited for */
		if (!found)
			rc = hear(p, gf_clock_s() + p->timeout_s + GF_TIMEOUT_MEETING_S, &heard,
				  err);
		if (!heard)
			gf_clock_sleep(NAP_S);
	}
	p->port->key = h.key;
	if (heard)
		return rc;
	if (found == -ENXIO && !p->folder)
		return gf_error_set(err, -ETIMEDOUT, "%s: waited %g s, and the host has no address",
				    p->name, p->timeout_s);
	memset(come, true, (size_t)p->ranks * sizeof(*come));
	come[0] = false;
	return blame(p->port, not_come(p, come, err), err);
}

/* --- together ----------------------------------------------------------- */

/* Meets all other ranks; gf_join_close follows also if this fails. */
static int open_port(struct gf_join_place *p, uint64_t key[2], struct gf_error *err)
{
	struct gf_port *q = gf_xcalloc(1, sizeof(*q));
	int i, rc;

	p->port = q;
	q->come = gf_xcalloc((size_t)p->ranks, sizeof(*q->come));
	q->fds = gf_xcalloc((size_t)p->ranks, sizeof(*q->fds));
	for (i = 0; i < p->ranks; i++)
		q->fds[i] = -1;
	for (i = 0; i < STRANGERS; i++)
		q->strangers[i].fd = -1;
	if (!p->rank)
		q->peers = gf_xcalloc((size_t)p->ranks, sizeof(*q->peers));
	rc = p->rank ? say_hello(p, err) : await_all(p, err);
	memcpy(key, q->key.halves, sizeof(q->key.halves));
	return rc;
}

static int allgather(void *place, const void *send, size_t size_bytes, void *recv,
		     struct gf_error *err)
{
	const struct gf_join_place *p = place;
	double until_s = gf_clock_s() + p->timeout_s;
	uint64_t size = size_bytes;
	int fd = p->port->fds[0], rc;
	bool heard;

	if (size_bytes > BLOB_MOST_BYTES)
		return gf_error_set(err, -EMSGSIZE, "%s: want at most %zu bytes of a rank, got %zu",
				    p->name, BLOB_MOST_BYTES, size_bytes);
	if (p->rank == 0) {
		if (size_bytes > 0)
			memcpy(recv, send, size_bytes);
		rc = blame(p->port, collect(p, size_bytes, recv, err), err);
		return tell(p, rc, err) ?: spread(p, size_bytes, recv, err);
	}
	rc = gf_socket_write(fd, &size, sizeof(size), until_s);
	rc = rc ?: gf_socket_write(fd, send, size_bytes, until_s);
	if (rc)
		return gf_error_errno(err, rc, "%s: rank 0", p->name);
	rc = hear(p, until_s + GF_TIMEOUT_MEETING_S, &heard, err);
	if (rc)
		return rc;
	rc = gf_socket_read(fd, recv, (size_t)p->ranks * size_bytes,
			    until_s + GF_TIMEOUT_MEETING_S);
	return rc ? gf_error_errno(err, rc, "%s: rank 0", p->name) : 0;
}

bool gf_join_is_port(const char *place)
{
	const char *colon = strrchr(place, ':');

	return !strchr(place, '/') && colon && colon > place && colon[1] &&
	       strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

int gf_join_open(const char *place, double timeout_s, struct gf_join *join, struct gf_error *err)
{
	const char *digits = gf_join_is_port(place) ? strrchr(place, ':') + 1 : NULL;
	const unsigned long port = digits ? strtoul(digits, NULL, 10) : 1;
	struct gf_join_place *p;
	int rc;

	if (join->ranks < 1 || join->rank < 0 || join->rank >= join->ranks)
		return gf_error_set(err, -EINVAL, "%s: want 0 <= rank < ranks, got rank %d of %d",
				    place, join->rank, join->ranks);
	if (port < 1 || port > UINT16_MAX)
		return gf_error_set(err, -EINVAL, "%s: want a port from 1 to %d, got %s", place,
				    UINT16_MAX, digits);
	p = gf_xcalloc(1, sizeof(*p));
	*p = (struct gf_join_place){
		.name = gf_xstrdup(place),
		.folder = !gf_join_is_port(place),
		.rank = join->rank,
		.ranks = join->ranks,
		.timeout_s = timeout_s,
	};
	join->allgather = allgather;
	join->ctx = p;
	rc = open_port(p, join->key, err);
	if (rc)
		gf_join_close(join);
	return rc;
}

void gf_join_close(struct gf_join *join)
{
	struct gf_join_place *p = join->ctx;
	struct gf_port *q = p->port;

	if (q->announced)
		gf_join_withdraw(p);
	for (int i = 0; i < p->ranks; i++)
		drop(&q->fds[i]);
	for (int i = 0; i < STRANGERS; i++)
		drop(&q->strangers[i].fd);
	for (int i = 0; i < q->nlisteners; i++)
		drop(&q->listeners[i]);
	free(q->peers);
	free(q->fds);
	free(q->come);
	free(q);
	free(p->name);
	free(p);
	join->ctx = NULL;
}
