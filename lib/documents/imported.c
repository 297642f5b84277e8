/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/imported.h"

#include <string.h>

#include "base/array.h"
#include "base/heap.h"

static const char *unit_of(const struct gf_imported *i)
{
	return i->unit ? i->unit : "line";
}

/* No file makes an endless line: one more kind is for all that come later. */
enum { KINDS_MOST = 16 };

static void leave(struct gf_imported *i, const char *what, size_t place, size_t count)
{
	struct gf_imported_left *l = i->left, *end = i->left + i->nleft;

	while (l < end && strcmp(l->what, what) != 0)
		l++;
	if (l == end && i->nleft > KINDS_MOST) {
		l--;
	} else if (l == end) {
		l = gf_array_push(&i->left, &i->nleft, &i->capacity);
		l->what = gf_xstrdup(i->nleft > KINDS_MOST ? "further ones" : what);
		l->first = place;
	}
	l->first = place < l->first ? place : l->first;
	l->count += count;
}

void gf_imported_leave(struct gf_imported *i, const char *what, size_t place)
{
	leave(i, what, place, 1);
}

void gf_imported_leave_many(struct gf_imported *i, const char *what, size_t count)
{
	if (count)
		leave(i, what, 0, count);
}

void gf_imported_find(struct gf_imported *i, const char *fmt, ...)
{
	va_list ap;

	if (i->found.length)
		gf_text_add(&i->found, ", ", 2);
	va_start(ap, fmt);
	gf_text_addv(&i->found, fmt, ap);
	va_end(ap);
}

char *gf_imported_line(const struct gf_imported *i, const char *file)
{
	struct gf_text t = {0};

	gf_text_addf(&t, "%s: %s%s%s: %s", file, i->kind, i->version ? " " : "",
		     i->version ? i->version : "", i->found.length ? i->found.data : "nothing");
	for (size_t k = 0; k < i->nleft; k++) {
		const struct gf_imported_left *l = &i->left[k];

		gf_text_addf(&t, "%s%s (%zu", k ? ", " : "; left out: ", l->what, l->count);
		if (l->first)
			gf_text_addf(&t, ", first in %s %zu", unit_of(i), l->first);
		gf_text_add(&t, ")", 1);
	}
	return gf_text_take(&t);
}

static void write(const struct gf_imported *i, struct gf_json_writer *w)
{
	gf_json_put_string(w, "imported_from", i->kind);
	if (i->version)
		gf_json_put_string(w, "version", i->version);
	if (i->found.length)
		gf_json_put_string(w, "found", i->found.data);
	if (!i->nleft)
		return;
	gf_json_open_array(w, "left_out");
	for (size_t k = 0; k < i->nleft; k++) {
		gf_json_open_line(w, NULL);
		gf_json_put_string(w, "what", i->left[k].what);
		gf_json_put_size(w, "count", i->left[k].count);
		if (i->left[k].first)
			gf_json_put_size(w, unit_of(i), i->left[k].first);
		gf_json_close_object(w);
	}
	gf_json_close_array(w);
}

void gf_imported_note(const struct gf_imported *i, char **text)
{
	struct gf_json_writer w = {0};

	gf_json_open_object(&w, NULL);
	write(i, &w);
	gf_json_close_object(&w);
	free(*text);
	*text = gf_text_take(&w.text);
}

void gf_imported_release(struct gf_imported *i)
{
	for (size_t k = 0; k < i->nleft; k++)
		free(i->left[k].what);
	free(i->left);
	free(i->version);
	gf_text_release(&i->found);
	memset(i, 0, sizeof(*i));
}
