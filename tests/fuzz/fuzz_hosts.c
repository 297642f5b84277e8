/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc's XML in its child process, which alone may crash; and the child's
 * answer, as it reaches the parent. The first byte says which: '<' is XML. */
#include <pthread.h>
#include <signal.h>

#include "harness.h"
#include "probe/probers.h"

/* A child that hwloc brings down is no finding: libFuzzer's handlers stay with
 * the parent. */
static void forget_handlers(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(signals); i++)
		signal(signals[i], SIG_DFL);
}

static bool try_xml(const char *data, size_t size)
{
	const struct gf_probe_config config = {.hwloc_xml = "f"};
	struct gf_host host = {0};
	struct gf_error err = {""};
	int rc = gf_hwloc_apart(&config, data, size, &host, &err);

	if (rc)
		harness_expect_line(&err, "f");
	gf_probe_host_release(&host);
	return !rc;
}

static bool try_answer(const char *data, size_t size)
{
	struct gf_host host = {0};
	struct gf_error err = {""};
	int rc = gf_probe_host_read(data, size, "f", &host, &err);

	if (rc)
		harness_expect_line(&err, "f");
	else
		free(gf_probe_host_write(&host));
	gf_probe_host_release(&host);
	return !rc;
}

static bool try_host(const char *data, size_t size, struct gf_rng *rng)
{
	static bool asked;

	(void)rng;
	if (!asked)
		pthread_atfork(NULL, NULL, forget_handlers);
	asked = true;
	return *data == '<' ? try_xml(data, size) : try_answer(data, size);
}

static const char *const seeds[] = {
	"tests/data/hwloc/*.xml",
	"tests/data/valid/topology-host.json",
	NULL,
};

const struct harness harness = {.seeds = seeds, .try = try_host};
