/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_STDIN_H
#define GF_BASE_STDIN_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Standard input of a process that a launcher may have started. A launcher (mpirun, mpiexec) passes
 * on what it reads itself, through a pipe; Open MPI 5.0.11 does not pass on the end. So the end of
 * the launcher's own input counts, too, where the launcher can be seen (/proc). What any other
 * program writes to this one ends when that program closes the pipe.
 */
enum gf_stdin {
	GF_STDIN_OWN,      /* no launcher passes it on */
	GF_STDIN_TERMINAL, /* the launcher reads a terminal */
	GF_STDIN_NOTHING,  /* the launcher reads /dev/null */
	GF_STDIN_OPEN,     /* the launcher's has not ended */
	GF_STDIN_ENDED,    /* the launcher's has ended */
	GF_STDIN_UNSEEN,   /* a daemon passes on that of a launcher elsewhere */
};
enum gf_stdin gf_stdin_source(void);

/* Waits for bytes or the end. 1: one of them is there; 0: the launcher's own input has ended, and
 * nothing has come for a second (5 s where nothing has `begun` to come); -ETIMEDOUT: nothing came
 * for half a minute from a launcher that is not to be seen. */
int gf_stdin_wait(bool begun, struct gf_error *err);

#endif
