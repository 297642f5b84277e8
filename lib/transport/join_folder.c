/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks meet in a folder: rank 0 listens at a port of its own and leaves its addresses there, in
 * the file rank-0, with a key drawn anew by each job. The other ranks say the key, so that a file
 * of an earlier job, or another program at such an address, brings nobody together. Rank 0 removes
 * the file.
 */
#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "transport/join_state.h"

#define HEAD "gfjoin 2 %016" PRIx64 "%016" PRIx64 "\n"
/* More addresses of one machine are not tried. */
#define ADDRESSES_MOST 64
/* As many are shorter, with the head. */
#define FILE_MOST_BYTES 8192

static char *path_of(const struct gf_join_place *p)
{
	return gf_xasprintf("%s/rank-0", p->name);
}

/* "ADDRESS:PORT" a line; those that other machines know come first. */
static void add_addresses(struct gf_text *out, int port)
{
	struct ifaddrs *all = NULL, *a;
	char host[NI_MAXHOST];
	int own, family;

	if (getifaddrs(&all))
		all = NULL;
	for (own = 0; own < 2; own++) {
		for (a = all; a; a = a->ifa_next) {
			family = a->ifa_addr ? a->ifa_addr->sa_family : 0;
			if ((family != AF_INET && family != AF_INET6) ||
			    getnameinfo(a->ifa_addr,
					family == AF_INET ? sizeof(struct sockaddr_in)
							  : sizeof(struct sockaddr_in6),
					host, sizeof(host), NULL, 0, NI_NUMERICHOST) ||
			    /* of one link alone */
			    strncmp(host, "fe80", 4) == 0 ||
			    (strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0) != own)
				continue;
			gf_text_addf(out, strchr(host, ':') ? "[%s]:%d\n" : "%s:%d\n", host, port);
		}
	}
	freeifaddrs(all);
}

int gf_join_announce(const struct gf_join_place *p, int listener, struct gf_join_key *key,
		     struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	GF_FREED char *path = path_of(p);
	struct gf_file f;
	struct stat st;
	int rc;

	if (getrandom(key, sizeof(*key), 0) != sizeof(*key))
		rc = gf_error_errno(err, -errno, "getrandom");
	else if (mkdir(p->name, 0777) && errno != EEXIST)
		rc = gf_error_errno(err, -errno, "%s", p->name);
	/* a pipe would be written to, and wait */
	else if (!lstat(path, &st) && !S_ISREG(st.st_mode))
		rc = gf_error_set(err, -EEXIST, "%s: want a regular file or none", path);
	else
		rc = 0;
	if (!rc) {
		gf_text_addf(&text, HEAD, key->halves[0], key->halves[1]);
		add_addresses(&text, gf_socket_port(listener));
		/* the key is for the ranks of one user */
		rc = gf_file_create_own(&f, path, 0600, err);
		rc = rc ?: gf_file_put(&f, text.data, text.length, err);
	}
	return rc;
}

char **gf_join_find(const struct gf_join_place *p, struct gf_join_key *key)
{
	char **places = gf_xcalloc(ADDRESSES_MOST + 1, sizeof(*places));
	char *path = path_of(p), text[FILE_MOST_BYTES + 1] = "", *rest, *line;
	size_t size, n = 0;
	int fd;

	if (gf_file_open_regular(path, &fd, &size, NULL) == 0) {
		if (read(fd, text, FILE_MOST_BYTES) < 0)
			text[0] = '\0';
		close(fd);
	}
	if (sscanf(text, "gfjoin 2 %16" SCNx64 "%16" SCNx64, &key->halves[0], &key->halves[1]) ==
	    2) {
		rest = text;
		strsep(&rest, "\n");
		while (n < ADDRESSES_MOST && (line = strsep(&rest, "\n")))
			/* a line that is whole */
			if (rest && gf_join_is_port(line))
				places[n++] = gf_xstrdup(line);
	}
	free(path);
	return places;
}

void gf_join_withdraw(const struct gf_join_place *p)
{
	GF_FREED char *path = path_of(p);

	unlink(path);
}
