/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that was built with an earlier gradflow.h: what it declares here is
 * what that header had. It runs with the library of today.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct gradflow_exchange;

struct gradflow_tensor {
	const char *name;
	size_t dimensions;
	size_t shape[8];
};

/* the first one's, before `former` */
struct gradflow_exchange_options {
	size_t size, tensor_size;
	const int *dtypes;
	const char *plan, *plan_text;
	const size_t *messages;
	size_t nmessages;
	const char *ways;
	size_t epoch_steps;
	double timeout_s, momentum;
	const char *transport;
	int (*allgather)(void *ctx, const void *send, size_t size_bytes,
			 void *recv);
	void *allgather_ctx;
	const char *meet;
	int rank, ranks;
	int on_device, device;
	void *stream;
};

int gradflow_exchange_open(const struct gradflow_tensor *tensors,
			   size_t ntensors,
			   const struct gradflow_exchange_options *options,
			   struct gradflow_exchange **x);
void gradflow_exchange_close(struct gradflow_exchange *x);
int gradflow_post(struct gradflow_exchange *x, size_t tensor, void *data);
int gradflow_flush(struct gradflow_exchange *x);
int gradflow_test(struct gradflow_exchange *x, size_t tensor);
int gradflow_wait(struct gradflow_exchange *x, size_t tensor);
uint64_t gradflow_exchange_steps(const struct gradflow_exchange *x);

const char *gradflow_error(void);

static const struct gradflow_tensor two[] = {{"b", 1, {3}}, {"a", 2, {2, 2}}};

static int exchange(void)
{
	static const size_t lengths[] = {1, 1};
	const struct gradflow_exchange_options o = {.size = sizeof(o),
						    .tensor_size =
							    sizeof(two[0]),
						    .messages = lengths,
						    .nmessages = 2,
						    .timeout_s = 5};
	struct gradflow_exchange *x;
	float b[3] = {1, 2, 3}, a[4] = {4, 5, 6, 7};
	int rc = gradflow_exchange_open(two, 2, &o, &x);

	if (rc)
		return rc;
	rc = gradflow_post(x, 1, a);
	rc = rc ? rc : gradflow_post(x, 0, b);
	rc = rc ? rc : gradflow_flush(x);
	rc = rc ? rc : gradflow_wait(x, SIZE_MAX);
	if (!rc && (gradflow_test(x, 1) != 1 || a[3] != 7 || b[0] != 1 ||
		    gradflow_exchange_steps(x) != 1))
		rc = -1;
	gradflow_exchange_close(x);
	return rc;
}

int main(void)
{
	int rc = exchange();

	if (rc)
		fprintf(stderr, "older: %d: %s\n", rc, gradflow_error());
	return rc != 0;
}
