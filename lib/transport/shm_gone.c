/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of the host whose process has ended. Shared memory outlives it, so nothing else shows: the
 * kernel is asked now and then.
 */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/shm_state.h"

/* Rounds of progress between two looks; most take less than 100 us. */
#define LOOK_EVERY 256
/* Other ranks may have told why, in messages that are still to be read. */
#define GRACE_S 0.05

void gf_shm_watch(struct gf_shm *s)
{
	struct gf_shm_peer *p;

	for (p = s->peers; p < s->peers + s->npeers; p++)
		/* threads of this process end with it; an older kernel has no such descriptors, and
		 * a timeout finds out */
		p->pid_fd = p->pid == (int)getpid() ? -1 : (int)syscall(SYS_pidfd_open, p->pid, 0);
}

bool gf_shm_has_ended(struct gf_shm_peer *p)
{
	struct pollfd ended = {.fd = p->pid_fd, .events = POLLIN};

	if (p->pid_fd < 0 || p->gone || poll(&ended, 1, 0) < 1)
		return p->gone;
	p->gone = true;
	p->gone_s = gf_clock_s();
	return true;
}

void gf_shm_look(struct gf_shm *s)
{
	struct gf_shm_peer *p;

	if (++s->rounds % LOOK_EVERY)
		return;
	for (p = s->peers; p < s->peers + s->npeers; p++)
		(void)gf_shm_has_ended(p);
}

int gf_shm_lost(struct gf_shm *s, const struct gf_comm_request *r, struct gf_error *err)
{
	const struct gf_shm_peer *p;

	if (r->peer < 0 || r->state > GF_SHM_POSTED)
		return 0;
	p = &s->peers[r->peer];
	if (!p->gone || gf_clock_s() - p->gone_s < GRACE_S)
		return 0;
	s->comm.broken = true;
	return gf_error_set(err, -ECONNRESET, "rank %d is gone: its process has ended", p->rank);
}
