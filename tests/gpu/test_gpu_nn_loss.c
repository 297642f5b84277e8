/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of every backend, on a device's. */
#include "nn_device.h"
#define gf_backends nn_device_backends
#include "../unit/test_loss.c"
