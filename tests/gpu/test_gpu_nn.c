/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of every backend, on a device's. */
#include "nn_device.h"
#define gf_backends nn_device_backends
/* The values between layers are bf16, too. */
#define BF16_GRADIENTS 0.15
#include "../unit/test_nn.c"
