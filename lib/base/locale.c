/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/locale.h"

#include <pthread.h>

static locale_t plain;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make(void)
{
	plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t gf_locale_enter(void)
{
	pthread_once(&made, make);
	return uselocale(plain);
}

void gf_locale_leave(locale_t before)
{
	uselocale(before);
}
