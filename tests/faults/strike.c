/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strikes a process at a call that it makes, for tests of faults. Preloaded
 * (LD_PRELOAD), it counts the calls of one function:
 *
 *	GF_STRIKE=FUNCTION:N:ACTION[:RANK]
 *
 * At the Nth call of FUNCTION the process stops (stop), dies (kill), never
 * returns from the call (hang), or sees it fail for want of space (full: write,
 * fsync, rename). RANK: only that rank of mpirun's job.
 *
 *	GF_TIMER_US=N
 *
 * Every N microseconds a signal comes that the process handles, as a
 *profiler's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <netdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>
#if GF_HAVE_UCX
#include <ucp/api/ucp.h>
#endif

#define EXPORT __attribute__((visibility("default")))

static struct {
	char function[64], action[8];
	int at;
	bool read;
} strike;
static atomic_int calls;

static void read_strike(void)
{
	const char *text = getenv("GF_STRIKE");
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	int only = -1;

	strike.read = true;
	if (!text ||
	    sscanf(text, "%63[^:]:%d:%7[^:]:%d", strike.function, &strike.at, strike.action,
		   &only) < 3 ||
	    (only >= 0 && (!rank || atoi(rank) != only)))
		strike.function[0] = '\0';
}

/* true: the call fails */
static bool strikes(const char *function)
{
	if (!strike.read)
		read_strike();
	if (strcmp(function, strike.function) != 0 || atomic_fetch_add(&calls, 1) + 1 != strike.at)
		return false;
	if (strcmp(strike.action, "full") == 0) {
		errno = ENOSPC;
		return true;
	}
	while (strcmp(strike.action, "hang") == 0)
		pause();
	kill(getpid(), strcmp(strike.action, "stop") == 0 ? SIGSTOP : SIGKILL);
	return false;
}

/* A function that is counted, and then does what it does. */
#define COUNTED(result, name, parameters, arguments)                                               \
	EXPORT result name parameters                                                              \
	{                                                                                          \
		static result(*next) parameters;                                                   \
                                                                                                   \
		if (!next)                                                                         \
			*(void **)&next = dlsym(RTLD_NEXT, #name);                                 \
		if (strikes(#name))                                                                \
			return (result)-1;                                                         \
		return next arguments;                                                             \
	}

COUNTED(int, MPI_Init_thread, (int *argc, char ***argv, int want, int *got),
	(argc, argv, want, got))
COUNTED(int, MPI_Comm_dup, (MPI_Comm c, MPI_Comm *to), (c, to))
COUNTED(int, MPI_Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info info, MPI_Comm *to),
	(c, type, key, info, to))
COUNTED(int, MPI_Comm_free, (MPI_Comm * c), (c))
COUNTED(int, MPI_Allreduce,
	(const void *from, void *to, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
	(from, to, n, t, o, c))
COUNTED(int, MPI_Iallreduce,
	(const void *from, void *to, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *r),
	(from, to, n, t, o, c, r))
COUNTED(int, MPI_Isend,
	(const void *data, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r),
	(data, n, t, to, tag, c, r))
COUNTED(int, MPI_Irecv,
	(void *data, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r),
	(data, n, t, from, tag, c, r))
COUNTED(int, MPI_Finalize, (void), ())

#if GF_HAVE_UCX
COUNTED(ucs_status_t, ucp_worker_create,
	(ucp_context_h c, const ucp_worker_params_t *p, ucp_worker_h *w), (c, p, w))
COUNTED(ucs_status_t, ucp_ep_create, (ucp_worker_h w, const ucp_ep_params_t *p, ucp_ep_h *e),
	(w, p, e))
COUNTED(ucs_status_ptr_t, ucp_tag_send_nbx,
	(ucp_ep_h e, const void *data, size_t n, ucp_tag_t t, const ucp_request_param_t *p),
	(e, data, n, t, p))
COUNTED(ucs_status_ptr_t, ucp_tag_recv_nbx,
	(ucp_worker_h w, void *data, size_t n, ucp_tag_t t, ucp_tag_t mask,
	 const ucp_request_param_t *p),
	(w, data, n, t, mask, p))
COUNTED(ucs_status_ptr_t, ucp_ep_close_nbx, (ucp_ep_h e, const ucp_request_param_t *p), (e, p))
#endif

static void ignore(int number)
{
	(void)number;
}

__attribute__((constructor)) static void start_timer(void)
{
	const char *text = getenv("GF_TIMER_US");
	const struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART};
	struct itimerval every = {{0}};

	if (!text || sigaction(SIGALRM, &action, NULL))
		return;
	every.it_interval.tv_usec = every.it_value.tv_usec = atoi(text);
	setitimer(ITIMER_REAL, &every, NULL);
}

COUNTED(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n))
COUNTED(int, fsync, (int fd), (fd))
COUNTED(int, getaddrinfo,
	(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list),
	(host, port, hints, list))
COUNTED(int, rename, (const char *from, const char *to), (from, to))
