/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log_lines.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/heap.h"

enum { LABEL_MOST = 128, LABEL_WORDS = 6, LABELS_MOST = 6 };

static const char blanks[] = " \t";

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, blanks);
}

/* --- what a terminal sees ------------------------------------------------- */

/* Behind an escape sequence: "ESC [ 1 ; 32 m", "ESC ] title BEL", "ESC c". */
static const char *skip_escape(const char *p, const char *end)
{
	if (p < end && *p == '[') {
		for (p++; p < end && (*p < '@' || *p > '~'); p++)
			;
	} else if (p < end && *p == ']') {
		while (p < end && *p != '\a' && *p != '\033')
			p++;
	}
	return p < end ? p + 1 : end;
}

/* mpirun puts its tag in front of each piece that it gets of a line, too:
 * "[1,0]<stdout>:" has so many characters, or 0. */
static size_t tag_length(const char *p, const char *end)
{
	size_t n = 1 + strspn(p + 1, "0123456789,");

	if (n == 1 || end - p < (ptrdiff_t)n + 10 || p[n] != ']')
		return 0;
	return strncmp(p + n, "]<stdout>:", 10) == 0 || strncmp(p + n, "]<stderr>:", 10) == 0
		       ? n + 10
		       : 0;
}

/* What stands after the last carriage return has overwritten the rest. */
static void add_visible(struct gf_text *t, const char *p, const char *end)
{
	while (p < end) {
		size_t tag = *p == '[' ? tag_length(p, end) : 0;
		char c = *p++;

		if (tag) {
			p += tag - 1;
			c = ' ';
		}
		if (c == '\033')
			p = skip_escape(p, end);
		else if (c == '\r')
			t->length = p == end || *p == '\r' ? t->length : 0;
		else if ((unsigned char)c < ' ' || c == 0x7f)
			gf_text_add(t, blanks, 1);
		else
			gf_text_add(t, &c, 1);
	}
	gf_text_add(t, "", 0);
}

/* --- labels --------------------------------------------------------------- */

/* "2026-11-26", "06:00:00,123", "2026/11/26T06:00:00Z" */
static bool is_time(const char *p, size_t n)
{
	size_t i, parts = 0;

	if (strspn(p, "0123456789-:/.,TZ+") < n || !isdigit((unsigned char)*p))
		return false;
	for (i = 0; i < n; i++)
		parts += p[i] == ':' || p[i] == '-' || p[i] == '/';
	return parts >= 2;
}

static bool is_name(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)p[i]) && !strchr("._-@/", p[i]))
			return false;
	return n > 0;
}

/* "[1,0]<stdout>:", "[pod/n/c]", "(head, pid=7)" */
static const char *skip_bracket(const char *p)
{
	const char *end = strchr(p, *p == '[' ? ']' : ')');

	if (!end || end - p > LABEL_MOST)
		return p;
	end++;
	if (strncmp(end, "<std", 4) == 0)
		end += strcspn(end, ">") + (strchr(end, '>') != NULL);
	return end + (*end == ':');
}

/* Behind one label; p if there is none. */
static const char *skip_label(const char *p)
{
	const size_t n = strcspn(p, blanks);
	const char *next = skip_blanks(p + n);
	const size_t digits = strspn(next, "0123456789");

	if (*p == '[' || *p == '(')
		return skip_bracket(p);
	if (*p == '>')
		return p + 1;
	if (is_time(p, n) || strncmp(p, "pod/", 4) == 0)
		return p + n;
	if (n > 1 && p[n - 1] == ':' && is_name(p, n - 1))
		return p + n;
	if ((strncmp(p, "stdout ", 7) == 0 || strncmp(p, "stderr ", 7) == 0) &&
	    (*next == 'F' || *next == 'P') && strchr(blanks, next[1]))
		return next + 1;
	if (!isalpha((unsigned char)*p) || !is_name(p, n))
		return p;
	if (next[0] == '|')
		return next + 1;
	return digits && next[digits] == ':' ? next + digits + 1 : p;
}

/* Behind the label that was learnt; NULL: the line begins otherwise. */
static const char *skip_alike(const char *p, const char *label)
{
	while (*label) {
		size_t a = strspn(label, "0123456789");
		size_t b = strspn(p, "0123456789");

		if (!a != !b || (!a && *p != *label))
			return NULL;
		label += a ? a : 1;
		p += b ? b : 1;
		if (label[-1] == ' ') {
			label = skip_blanks(label);
			p = skip_blanks(p);
		}
	}
	return p;
}

/* Does one of the program's own lines begin there? */
static bool is_own(const struct gf_log *log, const char *p)
{
	static const char *const remarks[] = {"#", NULL};
	const char *const *mark = log->marks ? log->marks : remarks;

	while (*mark && strncasecmp(p, *mark, strlen(*mark)) != 0)
		mark++;
	return *mark;
}

/* The own line that begins behind a few words, or NULL. In texts with marks, what stands behind a
 * remark or a shell's prompt is none. */
static const char *own_in(const struct gf_log *log, const char *p)
{
	for (size_t words = 0; *p && words <= LABEL_WORDS; words++) {
		if (is_own(log, p))
			return p;
		if (log->marks && (*p == '#' || strchr("$%#>", p[strcspn(p, blanks) - 1])))
			return NULL;
		p = skip_blanks(p + strcspn(p, blanks));
	}
	return NULL;
}

char *gf_log_next(struct gf_log *log)
{
	const char *end, *line, *next, *own;

	if (!log->at || !*log->at)
		return NULL;
	end = strchrnul(log->at, '\n');
	log->text.length = 0;
	add_visible(&log->text, log->at, end);
	log->at = end + (*end == '\n');
	log->line++;
	line = skip_blanks(log->text.data);
	for (size_t i = 0; *line && i < LABELS_MOST && !is_own(log, line); i++) {
		next = skip_label(line);
		if (next == line)
			break;
		line = skip_blanks(next);
	}
	own = own_in(log, line);
	if (own) {
		free(log->label);
		log->label = gf_xasprintf("%.*s", (int)(own - line), line);
		line = own;
	} else if (log->label && *log->label) {
		next = skip_alike(line, log->label);
		line = next ? next : line;
	}
	return log->text.data + (line - log->text.data);
}

void gf_log_release(struct gf_log *log)
{
	gf_text_release(&log->text);
	free(log->label);
	memset(log, 0, sizeof(*log));
}

size_t gf_log_words(char *line, char **words, size_t most)
{
	char *saved = NULL, *word;
	size_t n = 0;

	for (word = strtok_r(line, " \t\r", &saved); word && n < most;
	     word = strtok_r(NULL, " \t\r", &saved))
		words[n++] = word;
	return n;
}

bool gf_log_has_line(const char *text, const char *a, const char *b)
{
	while ((text = strstr(text, a))) {
		const char *end = strchrnul(text, '\n');

		if (memmem(text, (size_t)(end - text), b, strlen(b)))
			return true;
		text = end;
	}
	return false;
}
