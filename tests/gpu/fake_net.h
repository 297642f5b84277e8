/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_FAKE_NET_H
#define GF_TESTS_GPU_FAKE_NET_H

#include "fake.h"
#include "nn/net.h"

/*
 * A backend on the devices of fake.h: the reference backend's arithmetic, done when its turn in the
 * stream comes. So what a trainer does with a device has the bits of one without, or is wrong.
 * Gradients are not a number until they are made. Under a loss scale above 1, those that f16 would
 * not hold are infinite.
 */
extern const struct gf_backend fake_backend;

#endif
