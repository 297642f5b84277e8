/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_TIMEOUT_H
#define GF_BASE_TIMEOUT_H

/*
 * How long something waits for something, in seconds: one constant per kind. Pauses between two
 * looks are not here, but where they are made.
 */

/* Ranks for one that does not answer: to be found, to open, to move a message; the default of
 * --timeout. */
#define GF_TIMEOUT_S 60
/* A time-out for ranks, but between steps, where nothing answers for a rank that reads data or
 * builds its net: never less. */
#define GF_TIMEOUT_BETWEEN_STEPS_S 5
/* A time-out for ranks, but while a launcher starts them one by one: never less. */
#define GF_TIMEOUT_START_S 20
/* A process for a launcher that is to end its job. */
#define GF_TIMEOUT_ABORT_S 4
/* The ranks for each other when they part, by UCX, and then for their connections. */
#define GF_TIMEOUT_PART_S        4
#define GF_TIMEOUT_CONNECTIONS_S 5
/* Rank 0 of a meeting that failed, for others to ask why; and they for it. */
#define GF_TIMEOUT_MEETING_S 2
/* Rank 0 of a meeting for the hello of a stranger; and a rank for its echo. */
#define GF_TIMEOUT_HELLO_S 5
#define GF_TIMEOUT_ECHO_S  2
/* A rank's processes for the answer of a watch; and a rank that gives up for the others to hear of
 * it. */
#define GF_TIMEOUT_WATCH_S 2
#define GF_TIMEOUT_LEAVE_S 0.5
/* A run for a folder whose owner, on another host, does not touch its lock. */
#define GF_TIMEOUT_LEASE_S 15

#endif
