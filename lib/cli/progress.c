/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* Nothing shorter than this gets a bar; redraws at most this often. */
#define APPEAR_AFTER_S 1.0
#define REDRAW_S       0.1
#define BAR_CELLS      24

void gf_progress_start(struct gf_progress *p, const struct gf_cli *cli, const char *what)
{
	const char *term = getenv("TERM");

	memset(p, 0, sizeof(*p));
	p->what = what;
	p->cli = cli;
	p->started_s = gf_clock_s();
	p->shown = !cli->quiet && !cli->launched && isatty(STDERR_FILENO) && term &&
		   strcmp(term, "dumb") != 0;
}

void gf_progress_at(struct gf_progress *p, double fraction, const char *detail)
{
	double now = gf_clock_s();
	int i, full;

	if (!p->shown || now - p->started_s < APPEAR_AFTER_S || now - p->drawn_s < REDRAW_S)
		return;
	p->drawn_s = now;
	fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
	full = (int)(fraction * BAR_CELLS);
	fprintf(stderr, "\r%s [", p->what);
	for (i = 0; i < BAR_CELLS; i++)
		fputc(i < full ? '#' : '.', stderr);
	fprintf(stderr, "] %3.0f %%%s%s\033[K", 100 * fraction, detail ? "  " : "",
		detail ? detail : "");
	fflush(stderr);
}

void gf_progress_report(void *ctx, double fraction, const char *detail)
{
	struct gf_progress *p = ctx;

	gf_progress_at(p, fraction, detail);
	if (p->detail != detail)
		gf_cli_note(p->cli, 1, "%s (%.0f %% done)", detail, 100 * fraction);
	p->detail = detail;
}

void gf_progress_end(struct gf_progress *p)
{
	if (p->shown && p->drawn_s > 0)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
