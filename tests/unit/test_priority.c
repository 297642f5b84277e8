/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/resource.h>

#include "test.h"
#include "transport/comm.h"
#include "transport/processors.h"

/* LOWEST: of what Linux has, where nothing can fall */
enum { THREADS = 8, LOWEST = 19 };

static int priority(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static void *note(void *at)
{
	*(int *)at = priority();
	return NULL;
}

static void *start_another(void *at)
{
	pthread_t id;

	EXPECT(!gf_priority_start(&id, note, at), "start");
	return pthread_join(id, NULL) ? at : NULL;
}

static int started(int (*start)(pthread_t *, void *(*)(void *), void *))
{
	pthread_t id;
	int at = -99;

	EXPECT(!start(&id, note, &at), "start");
	pthread_join(id, NULL);
	return at;
}

static int start_plainly(pthread_t *id, void *(*main)(void *), void *ctx)
{
	return pthread_create(id, NULL, main, ctx);
}

/* Compute and its threads fall; a communication thread that is started after that does not. */
static void test_give_way(void)
{
	int before = priority(), found[THREADS], i;
	pthread_t ids[THREADS];

	EXPECT(started(gf_priority_start) == before, "before");
	gf_priority_give_way();
	EXPECT(priority() > before || before == LOWEST, "compute: %d, before %d", priority(),
	       before);
	EXPECT(started(start_plainly) == priority(), "a thread of compute's");
	EXPECT(started(gf_priority_start) == before, "a communication thread");
	/* several ask at once */
	for (i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&ids[i], NULL, start_another, &found[i]), "create");
	for (i = 0; i < THREADS; i++) {
		pthread_join(ids[i], NULL);
		EXPECT(found[i] == before, "thread %d: %d", i, found[i]);
	}
}

static void test_crowded(void)
{
	struct gf_comm c = {.ranks = 2, .processors = 2};

	EXPECT(!gf_priority_crowded(&c, 1), "one and one on two");
	EXPECT(gf_priority_crowded(&c, 2), "two and one on two");
	c.processors = 0; /* not known */
	EXPECT(!gf_priority_crowded(&c, 2), "unknown");
	c.crowded = true;
	EXPECT(gf_priority_crowded(&c, 1), "more ranks than processors");
}

int main(void)
{
	test_crowded();
	test_give_way();
	return TEST_END();
}
