/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"

/* "<formatted>: <reason>", without one just the former. */
static void put(struct gf_error *err, const char *reason, const char *fmt, va_list ap)
{
	struct gf_heap_guard guard GF_HEAP_GUARD;
	struct gf_text whole = {0};

	if (GF_HEAP_FAILS(guard)) { /* then that is what is said */
		snprintf(err->text, sizeof(err->text), "%s", guard.line);
		return;
	}
	gf_text_addv(&whole, fmt, ap);
	if (reason)
		gf_text_addf(&whole, ": %s", reason);
	gf_text_one_line(err->text, sizeof(err->text), whole.data ? whole.data : "");
	gf_text_release(&whole);
}

int gf_error_set(struct gf_error *err, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	va_start(ap, fmt);
	put(err, NULL, fmt, ap);
	va_end(ap);
	return rc;
}

void gf_error_prefix(struct gf_error *err, const char *fmt, ...)
{
	struct gf_error old;
	va_list ap;

	if (!err)
		return;
	old = *err;
	va_start(ap, fmt);
	put(err, old.text, fmt, ap);
	va_end(ap);
}

int gf_error_errno(struct gf_error *err, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	va_start(ap, fmt);
	put(err, strerror(-rc), fmt, ap);
	va_end(ap);
	return rc;
}
