/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_DEVICE_H
#define GF_CONTEST_DEVICE_H

#include "base/error.h"
#include "base/text.h"
#include "transport/comm.h"
#include "transport/message_element.h"
#include "transport/watch.h"
#include "cuda/lanes/nccl.h"
#include "cuda/gpu.h"

/*
 * The place of the measured messages: the host's memory, or a GPU of each rank. Between GPUs
 * messages go by NCCL where it is installed and every rank has a GPU of its own; else by the host,
 * copied down before and up after.
 */
struct gf_contest_device {
	const char *name;               /* what was asked for; NULL: cpu */
	struct gf_gpu *gpu;             /* NULL: the host */
	const struct gf_nccl_ops *nccl; /* NULL: by the host */
	struct gf_watch *watch;         /* the caller's, while NCCL moves */
	char why[200];                  /* by the host, though on GPUs */
};

/* cpu, cuda (the rank's number on its host, in turn), cuda:N, or auto: cuda where every rank can?
 * -EINVAL. */
int gf_contest_device_check(const struct gf_contest_device *d, struct gf_error *err);

/* Collective: one whose name passed the check. -ENODEV: some rank has no such GPU. */
int gf_contest_device_open(struct gf_comm *comm, struct gf_contest_device *d, struct gf_error *err);
/* Messages are of such elements: those that this build does not add between GPUs go by the host. */
void gf_contest_device_suit(struct gf_contest_device *d, const struct gf_element *e);
void gf_contest_device_close(struct gf_contest_device *d);

/* The library that reduces messages whole, with its version: "NCCL 2.28.9", "Open MPI 4.1.4";
 * empty: none. Returns text. */
#define GF_CONTEST_LIBRARY_TEXT 96
const char *gf_contest_device_library(const struct gf_contest_device *d, const struct gf_comm *comm,
				      char text[GF_CONTEST_LIBRARY_TEXT]);

/* "cpu" or "cuda"; and what carries messages, "nccl" or the transport's. */
const char *gf_contest_device_kind(const struct gf_contest_device *d);
const char *gf_contest_device_transport(const struct gf_contest_device *d,
					const struct gf_comm *comm);

#endif
