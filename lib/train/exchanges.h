/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_EXCHANGES_H
#define GF_TRAIN_EXCHANGES_H

#include "train/exchange.h"

/* The exchanges of exchange_registry.c, one file each. */
extern const struct gf_exchange_ops gf_exchange_dense;
extern const struct gf_exchange_ops gf_exchange_csc;
extern const struct gf_exchange_ops gf_exchange_topk;
extern const struct gf_exchange_ops gf_exchange_gtopk;

#endif
