/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/join_state.h"

#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"

#define BACKLOG 1024
#define LOOK_S  1e3 /* a limit of poll */

/* HOST:PORT in two; brackets round an address go. */
static void split(const char *place, char **host, char **port)
{
	const char *colon = strrchr(place, ':');
	size_t length = (size_t)(colon - place);
	bool bracketed = *place == '[' && length > 1 && colon[-1] == ']';

	*host = gf_xasprintf("%.*s", (int)(length - (bracketed ? 2 : 0)), place + bracketed);
	*port = gf_xstrdup(colon + 1);
}

/* The addresses of the place; NULL: any address of this machine. */
static int look_up(const char *host, const char *port, int flags, struct addrinfo **list)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = flags | AI_NUMERICSERV};
	int rc = getaddrinfo(host, port, &hints, list);

	if (rc)
		*list = NULL;
	return rc;
}

/* 0: ready; -ETIMEDOUT. */
static int await(int fd, short events, double until_s)
{
	struct pollfd p = {.fd = fd, .events = events};
	double left_s;

	do {
		left_s = fmin(until_s - gf_clock_s(), LOOK_S);
		if (poll(&p, 1, left_s > 0 ? (int)(left_s * 1e3) + 1 : 0) > 0)
			return 0;
	} while (until_s > gf_clock_s());
	return -ETIMEDOUT;
}

/* --- beginning ---------------------------------------------------------- */

static int listen_at(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, off = 0, rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* any address: of the older kind, too */
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* One socket takes both kinds of addresses, if there are both. */
static int listen_at_any(const char *port, int fds[GF_SOCKET_LISTENERS])
{
	static const int families[] = {AF_INET6, AF_INET};
	const struct addrinfo *a;
	struct addrinfo *list;
	int rc = -EADDRNOTAVAIL;

	(void)look_up(NULL, port, AI_PASSIVE, &list);
	for (size_t i = 0; i < GF_ARRAY_LENGTH(families); i++)
		for (a = list; a && rc < 0; a = a->ai_next)
			if (a->ai_family == families[i])
				rc = fds[0] = listen_at(a);
	if (list)
		freeaddrinfo(list);
	return rc < 0 ? rc : 1;
}

/* A table of hosts may have an address twice. */
static bool is_repeated(const struct addrinfo *list, const struct addrinfo *a)
{
	while (list != a && (list->ai_addrlen != a->ai_addrlen ||
			     memcmp(list->ai_addr, a->ai_addr, a->ai_addrlen)))
		list = list->ai_next;
	return list != a;
}

/* Tables of hosts give a machine's own name 127.0.1.1 (Debian) or 127.0.0.2 (systemd), which no
 * other machine reaches. */
static bool stands_for_host(const struct addrinfo *a)
{
	uint32_t address =
		a->ai_family == AF_INET
			? ntohl(((const struct sockaddr_in *)a->ai_addr)->sin_addr.s_addr)
			: 0;

	return address >> 24 == IN_LOOPBACKNET && address != INADDR_LOOPBACK;
}

/* -EADDRNOTAVAIL: none is this machine's. */
static int listen_at_each(const struct addrinfo *list, bool by_name, int fds[GF_SOCKET_LISTENERS])
{
	const struct addrinfo *a;
	int n = 0, rc = 0;

	for (a = list; a && n < GF_SOCKET_LISTENERS; a = a->ai_next) {
		if (is_repeated(list, a) || (by_name && stands_for_host(a)))
			continue;
		rc = listen_at(a);
		if (rc >= 0)
			fds[n++] = rc;
		else if (rc != -EADDRNOTAVAIL && rc != -EAFNOSUPPORT)
			break; /* another process has the port there */
		rc = 0;
	}
	while (rc && n > 0)
		close(fds[--n]);
	return rc ?: n ?: -EADDRNOTAVAIL;
}

int gf_socket_listen(const char *place, int fds[GF_SOCKET_LISTENERS], struct gf_error *err)
{
	struct addrinfo *list = NULL;
	GF_FREED char *host = NULL, *port = NULL;
	int rc = -EADDRNOTAVAIL;

	if (!place) {
		rc = listen_at_any("0", fds);
		return rc < 0 ? gf_error_errno(err, rc, "listen") : rc;
	}
	split(place, &host, &port);
	if (!look_up(host, port, 0, &list))
		rc = listen_at_each(list, strncmp(host, "127.", 4) != 0, fds);
	if (rc == -EADDRNOTAVAIL)
		rc = listen_at_any(port, fds);
	if (list)
		freeaddrinfo(list);
	return rc < 0 ? gf_error_errno(err, rc, "%s: listen", place) : rc;
}

int gf_socket_port(int listener)
{
	struct sockaddr_storage at = {0};
	socklen_t size = sizeof(at);

	if (getsockname(listener, (struct sockaddr *)&at, &size))
		return 0;
	return ntohs(at.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&at)->sin6_port
					      : ((const struct sockaddr_in *)&at)->sin_port);
}

static int connect_to(const struct addrinfo *a, double until_s)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int code = 0, rc = 0;
	socklen_t size = sizeof(code);

	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS)
		rc = -errno;
	rc = rc ?: await(fd, POLLOUT, until_s);
	if (!rc && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size))
		rc = -code;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int gf_socket_connect(const char *place, double until_s)
{
	const struct addrinfo *a;
	struct addrinfo *list;
	GF_FREED char *host = NULL, *port = NULL;
	int rc = -ENXIO, left = 0;
	double now_s;

	split(place, &host, &port);
	if (!look_up(host, port, 0, &list))
		for (a = list; a; a = a->ai_next)
			left++;
	/* one that is dead leaves the others their share of the time */
	for (a = list; a && rc < 0; a = a->ai_next, left--) {
		now_s = gf_clock_s();
		rc = connect_to(a, now_s + (until_s - now_s) / left);
	}
	if (list)
		freeaddrinfo(list);
	return rc;
}

int gf_socket_accept(int listener, char peer[GF_SOCKET_PEER])
{
	struct sockaddr_storage at = {0};
	socklen_t size = sizeof(at);
	static const char older[] = "::ffff:"; /* as one of the newer kind */
	char host[GF_SOCKET_PEER - 9] = "unknown", port[6] = "", *shown = host;
	int fd = accept4(listener, (struct sockaddr *)&at, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)getnameinfo((const struct sockaddr *)&at, size, host, sizeof(host), port,
			  sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	if (strncmp(host, older, strlen(older)) == 0)
		shown += strlen(older);
	snprintf(peer, GF_SOCKET_PEER, strchr(shown, ':') ? "[%s]:%s" : "%s:%s", shown, port);
	return fd;
}

/* --- bytes -------------------------------------------------------------- */

ssize_t gf_socket_some(int fd, void *data, size_t size_bytes)
{
	ssize_t n = recv(fd, data, size_bytes, 0);

	if (n > 0 || !size_bytes)
		return n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n < 0 ? -errno : -ECONNRESET;
}

bool gf_socket_gone(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

int gf_socket_peek(int fd, void *data, size_t size_bytes, double until_s)
{
	int low = (int)size_bytes, one = 1, rc;
	ssize_t n;

	/* poll waits for so many */
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low));
	rc = await(fd, POLLIN, until_s);
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	if (rc)
		return rc;
	n = recv(fd, data, size_bytes, MSG_PEEK);
	return n == (ssize_t)size_bytes ? 0 : n < 0 ? -errno : -ECONNRESET;
}

int gf_socket_read(int fd, void *data, size_t size_bytes, double until_s)
{
	char *at = data, *end = at + size_bytes;
	ssize_t n;
	int rc = 0;

	while (!rc && at < end) {
		n = gf_socket_some(fd, at, (size_t)(end - at));
		if (n < 0)
			return (int)n;
		at += n;
		if (n == 0)
			rc = await(fd, POLLIN, until_s);
	}
	return rc;
}

int gf_socket_write(int fd, const void *data, size_t size_bytes, double until_s)
{
	const char *at = data, *end = at + size_bytes;
	ssize_t n;
	int rc = 0;

	while (!rc && at < end) {
		n = send(fd, at, (size_t)(end - at), MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		if (n < 0)
			rc = await(fd, POLLOUT, until_s);
	}
	return rc;
}
