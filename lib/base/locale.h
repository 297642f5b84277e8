/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_LOCALE_H
#define GF_BASE_LOCALE_H

#include <locale.h>

/*
 * Numbers in documents and messages have a decimal point, and letters are those of ASCII. A program
 * that the library is part of may have chosen another locale (a comma; a Turkish i), so calls of
 * the library, and threads of its own, are in the locale "C". The program's other threads keep
 * theirs.
 */

/* This thread is in the locale "C" from now on. Returns the one before. */
locale_t gf_locale_enter(void);
void gf_locale_leave(locale_t before);

#endif
