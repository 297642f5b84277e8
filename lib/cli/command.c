/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/command.h"

#include <argp.h>
#include <assert.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/human.h"
#include "cli/start.h"
#include "cli/share.h"
#include "json/keys.h"

/* The heading of the options without a group. */
#define SHARED "Every command:"

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* The paths that its argument may be; --data takes both kinds. */
static const char *paths_of(const struct gf_setting *s)
{
	const char *arg = or_empty(s->arg);
	size_t n = strlen(arg);

	if (n >= 3 && strcmp(arg + n - 3, "DIR") == 0)
		return "folders";
	return s->share || (n >= 4 && strcmp(arg + n - 4, "FILE") == 0) || strcmp(arg, "TRACE") == 0
		       ? "files"
		       : "";
}

static void add_registry(struct gf_text *out, const struct gf_registry *r)
{
	const struct gf_named *e;

	for (size_t i = 0; r->entries && (e = gf_registry_at(r, i)); i++)
		if (!r->offers || r->offers(e))
			gf_text_addf(out, "word\t%s\t%s\n", e->name, or_empty(e->description));
}

/* What the command's arguments hold before the parse, where it is a value that the option takes. */
static void add_initial(const struct gf_setting *s, const void *arguments, struct gf_text *out)
{
	const void *at = (const char *)arguments + s->offset;
	double number = 0;
	int choice;

	switch (s->kind) {
	case GF_SETTING_TEXT:
		gf_text_addf(out, "%s", or_empty(*(const char *const *)at));
		return;
	case GF_SETTING_CHOICE:
		choice = *(const int *)at;
		gf_text_addf(out, "%s", choice >= 0 ? s->names[choice] : "");
		return;
	case GF_SETTING_TIME:
		if (*(const double *)at > 0)
			gf_text_addf(out, "%s", gf_human_time(*(const double *)at).text);
		return;
	case GF_SETTING_SIZE:
		if (*(const size_t *)at && *(const size_t *)at < SIZE_MAX)
			gf_text_addf(out, "%s", gf_human_size((double)*(const size_t *)at).text);
		return;
	case GF_SETTING_WHOLE:
		number = (double)*(const size_t *)at;
		break;
	case GF_SETTING_INT:
		number = *(const int *)at;
		break;
	case GF_SETTING_REAL:
		number = *(const double *)at;
		break;
	default:
		return;
	}
	if (number != 0 && number >= s->low && number <= s->high)
		gf_text_addf(out, "%.15g", number);
}

/* The help of a setting, or of a key of its, and its default in brackets, unless the text ends in
 * brackets itself; the caller frees. */
static char *help_of(const struct gf_setting *s, const struct gf_field *key, const char *help,
		     const void *arguments)
{
	struct gf_text out = {0}, told = {0};

	gf_text_addf(&out, "%s", help);
	if (out.data[out.length - 1] == ')')
		return gf_text_take(&out);
	if (key && s->defaults)
		s->defaults(key, &told);
	else if (!key && arguments)
		add_initial(s, arguments, &told);
	else if (key && arguments)
		gf_field_print(key, (const char *)arguments + s->offset2, &told);
	if (told.length && strcmp(told.data, "0") != 0)
		gf_text_addf(&out, " (%s)", told.data);
	gf_text_release(&told);
	return gf_text_take(&out);
}

static void add_record(struct gf_text *out, const char *name, const struct gf_record *r)
{
	const struct gf_field *f;

	for (size_t k = 0; r && (f = gf_keys_at(r, k)); k++)
		gf_text_addf(out, "key\t%s\t%s\t%s\n", name, f->key, f->help);
}

static void add_keys(struct gf_text *out, const struct gf_setting *s)
{
	const struct gf_entry *e;
	size_t i;

	add_record(out, "", s->keys);
	for (i = 0; s->keys_offset && (e = (const void *)gf_registry_at(&s->from[0], i)); i++)
		add_record(out, e->name, e->record);
}

/* A brief command lacks one of those that all have. */
static bool lacks(const struct gf_command *c, const struct gf_setting *s)
{
	return c->brief && s->letter == 'v';
}

static void add_options(struct gf_text *out, const struct gf_command *c,
			const struct gf_setting *settings, size_t count, const void *arguments)
{
	const struct gf_setting *s;
	int group = -1; /* of the option before */
	char *help;

	for (s = settings; s < settings + count; s++) {
		if (s->hidden || lacks(c, s))
			continue;
		if (s->group != group)
			gf_text_addf(out, "group\t%s\n",
				     s->group ? c->groups[s->group - 1] : SHARED);
		group = s->group;
		help = help_of(s, s->field, s->help, arguments);
		gf_text_addf(out, "option\t%s\t%.1s\t%s\t%s\t%s\t%s\n", s->name,
			     (char[]){(char)s->letter, '\0'}, or_empty(s->arg),
			     s->repeats ? "1" : "", paths_of(s), help);
		free(help);
		/* a choice's names are those of its registry */
		for (size_t i = 0;
		     s->names && s->names[i] && !(s->kind == GF_SETTING_CHOICE && s->from->entries);
		     i++)
			gf_text_addf(out, "word\t%s\t\n", s->names[i]);
		for (size_t i = 0; i < GF_ARRAY_LENGTH(s->from); i++)
			add_registry(out, &s->from[i]);
		if (s->kind == GF_SETTING_ENTRY)
			add_keys(out, s);
		if (s->share) {
			struct gf_list shipped = gf_cli_share_list(s->share, NULL);

			add_registry(out, &shipped.of);
			gf_cli_share_list_free(&shipped);
		}
	}
}

/* "* but NAMES" with the names that it stands for. */
static void add_rule(struct gf_text *out, const struct gf_command *c,
		     const struct gf_setting_rule *r)
{
	bool all_but = strncmp(r->without, "* ", 2) == 0;

	gf_text_addf(out, "rule\t%s\t%s", r->options, all_but ? "" : r->without);
	for (size_t i = 0; all_but && i < c->nsettings; i++)
		if (gf_setting_listed(r->without, c->settings[i].name))
			gf_text_addf(out, "%s ", c->settings[i].name);
	gf_text_addf(out, "\n");
}

/* Every command has these, but a brief one no -v. */
static const struct gf_setting shared[] = {
	{"output", "FILE", .help = "write to FILE instead of standard output", .letter = 'o'},
	{"quiet", NULL, .help = "print nothing but errors", .letter = 'q'},
	{"verbose", NULL, .help = "print more; may be repeated", .letter = 'v', .repeats = true},
	{"help", NULL, .help = "print all options; -h: those that matter most, and an example",
	 .letter = 'h'},
	{"version", NULL, .help = "print the version", .letter = 'V'},
};

/*
 * A command's options, as the shells' scripts in completions/ and man/page.sh read them. Lines of
 * fields between tabs:
 *
 *	command NAME ARGUMENTS
 *	name DOCUMENT
 *	group HEADING
 *	option NAME LETTER ARG REPEATS(1) PATHS(files, folders) HELP
 *	word TEXT HELP
 *	key NAME KEY HELP
 *	rule OPTIONS WITHOUT
 *
 * A name may stand in place of an argument's file. A word belongs to the option before it. A key
 * belongs to that option, too: it may follow the word NAME, or any word where NAME is empty.
 */
static void complete(const struct gf_command *c, const void *arguments, struct gf_text *out)
{
	const struct gf_named *e;

	gf_text_addf(out, "command\t%s\t%s\n", c->name, or_empty(c->arguments));
	for (size_t i = 0; c->kinds && c->kinds[i]; i++) {
		struct gf_list shipped = gf_cli_share_list(c->kinds[i], NULL);

		for (size_t k = 0; (e = gf_registry_at(&shipped.of, k)); k++)
			gf_text_addf(out, "name\t%s\n", e->name);
		gf_cli_share_list_free(&shipped);
	}
	add_options(out, c, c->settings, c->nsettings, arguments);
	add_options(out, c, shared, GF_ARRAY_LENGTH(shared), NULL);
	for (size_t i = 0; i < c->nrules; i++)
		if (c->rules[i].without)
			add_rule(out, c, &c->rules[i]);
}

/* Keys of options; a letter stands for itself. */
enum {
	KEY_COMPLETION = 256,
	KEY_HELP, /* -h is another */
	KEY_USAGE,
	KEY_WORDS,
	KEY_SETTING, /* and those after it: settings without a letter */
};

/* argp's messages name the second. */
static const struct argp_option hidden_options[] = {
	{"completion", KEY_COMPLETION, NULL, OPTION_HIDDEN, NULL, 0},
	{"usage", KEY_USAGE, NULL, OPTION_HIDDEN, NULL, 0},
};

/* What the parse fills; cli is the first part of arguments. */
struct parse {
	const struct gf_command *command;
	struct gf_cli *cli;
	void *arguments;
};

static int key_of(const struct gf_command *c, size_t i)
{
	return c->settings[i].letter ? c->settings[i].letter : KEY_SETTING + (int)i;
}

/* Options as argp takes them. A group each keeps them in their order, which argp would make the
 * alphabet's; so headings are entries, too. */
struct options {
	struct argp_option *list; /* an empty one ends it */
	size_t n;
	int group;                   /* of the setting before; 0: none */
	const struct gf_setting *of; /* whose keys are added */
	const void *arguments;
};

/* The help is owned, and so is the name of what is no option, which has KEY_WORDS. */
static void add(struct options *o, struct argp_option option)
{
	o->list = gf_xreallocarray(o->list, o->n + 2, sizeof(*o->list));
	option.group = (int)o->n + 1;
	if (option.key == KEY_WORDS)
		option.flags = OPTION_DOC | OPTION_NO_USAGE;
	o->list[o->n++] = option;
	o->list[o->n] = (struct argp_option){0};
}

static void add_heading(struct options *o, const char *text)
{
	add(o, (struct argp_option){.name = gf_xstrdup(text), .key = KEY_WORDS});
}

/* Adds an option and, hidden after it, its other name. */
static void add_option(struct options *o, const struct gf_setting *s, int key)
{
	add(o, (struct argp_option){s->name, key, s->arg,
				    (s->hidden ? OPTION_HIDDEN : 0) |
					    (s->otherwise ? OPTION_ARG_OPTIONAL : 0),
				    help_of(s, s->field, s->help, o->arguments)});
	if (s->alias)
		add(o, (struct argp_option){s->alias, .flags = OPTION_ALIAS | OPTION_HIDDEN});
}

/* KEY=VALUE as an option is written. */
static void add_key(void *options, const struct gf_field *f, const char *help)
{
	struct options *o = options;

	add(o, (struct argp_option){gf_xasprintf("%s=%s", f->key, f->unit), KEY_WORDS,
				    .doc = help_of(o->of, f, help, o->arguments)});
}

#define KEYS_OF "Keys of "

static void add_keys_of(struct options *o, const struct gf_setting *s)
{
	GF_FREED char *heading = gf_xasprintf(KEYS_OF "--%s:", s->name);

	add_heading(o, heading);
	o->of = s;
	gf_keys_each(s->keys_offset ? &s->from[0] : NULL, s->keys, add_key, o);
}

/* All options, or those that are used often. */
static struct argp_option *options_of(const struct gf_command *c, const void *arguments, bool often)
{
	struct options o = {.arguments = arguments};
	const struct gf_setting *s;

	for (size_t i = 0; i < c->nsettings; i++) {
		s = &c->settings[i];
		if (often && !s->often)
			continue;
		if (!often && s->group != o.group && !s->hidden)
			add_heading(&o, c->groups[s->group - 1]);
		o.group = s->group;
		add_option(&o, s, key_of(c, i));
	}
	for (size_t i = 0; i < c->nsettings && !often; i++)
		if (c->settings[i].kind == GF_SETTING_ENTRY)
			add_keys_of(&o, &c->settings[i]);
	if (!often)
		add_heading(&o, SHARED);
	o.arguments = NULL;
	for (s = shared; s < shared + GF_ARRAY_LENGTH(shared) && !often; s++)
		if (!lacks(c, s))
			add_option(&o, s, s->letter == 'h' ? KEY_HELP : s->letter);
	if (!often)
		add(&o, (struct argp_option){NULL, 'h', .flags = OPTION_HIDDEN});
	for (size_t i = 0; i < GF_ARRAY_LENGTH(hidden_options) && !often; i++)
		add(&o, hidden_options[i]);
	return o.list;
}

static void free_options(struct argp_option *list)
{
	struct argp_option *o;

	for (o = list; o->name || o->key; o++) {
		if (o->key == KEY_WORDS)
			free((char *)o->name);
		free((char *)o->doc);
	}
	free(list);
}

static void print_completion(const struct parse *p)
{
	struct gf_text out = {0};

	complete(p->command, p->arguments, &out);
	fputs(out.data, stdout);
	exit(0);
}

/* A word that differs from the name in case alone becomes it. */
static void spell_as(const char *name, char *word, size_t length)
{
	if (strlen(name) == length && strncasecmp(name, word, length) == 0)
		memcpy(word, name, length);
}

/* Names are taken in any case: "Q8,FP4" becomes "q8,fp4". Of an option that takes files, a name is
 * all of the argument, or stands before a colon. */
static void spell(const struct gf_setting *s, char *arg)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	const struct gf_named *e;
	size_t i, k, n;

	for (; arg && *arg; arg += n ? n : 1) {
		n = strspn(arg, letters);
		if (*paths_of(s) && arg[n] && arg[n] != ':')
			return;
		for (i = 0; s->names && s->names[i]; i++)
			spell_as(s->names[i], arg, n);
		for (i = 0; i < GF_ARRAY_LENGTH(s->from) && s->from[i].entries; i++)
			for (k = 0; (e = gf_registry_at(&s->from[i], k)); k++)
				spell_as(e->name, arg, n);
		if (*paths_of(s))
			return;
	}
}

/* What it does, how it is called, the options that are used often, and the first example. */
static void print_short(const struct parse *p)
{
	const struct gf_command *c = p->command;
	const char *after = strchr(c->help, '\v') + 1, *end = after + strcspn(after, "\n");
	struct argp_option *options = options_of(c, p->arguments, true);
	char *doc;

	end += *end == '\n';
	end += strcspn(end, "\n");
	doc = gf_xasprintf("%.*s%.*s\n\n%s --help prints all options, man %s tells more.",
			   (int)(after - c->help), c->help, (int)(end - after), after, c->name,
			   c->name);
	argp_help(&(struct argp){.options = options, .args_doc = c->arguments, .doc = doc}, stdout,
		  ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, (char *)c->name);
	free_options(options);
	free(doc);
	exit(0);
}

static int parse_setting(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;
	const struct gf_command *c = p->command;
	struct gf_error err;
	size_t i;

	for (i = 0; i < c->nsettings && key_of(c, i) != key; i++)
		;
	if (i == c->nsettings)
		return ARGP_ERR_UNKNOWN;
	assert(i < GF_CLI_SETTINGS_MOST);
	p->cli->given[i] = true;
	if (!arg)
		arg = (char *)c->settings[i].otherwise;
	else
		spell(&c->settings[i], arg);
	if (gf_setting_store(&c->settings[i], arg, p->arguments, &err) < 0)
		argp_error(state, "--%s: %s", c->settings[i].name, err.text);
	return 0;
}

static void check(struct argp_state *state)
{
	const struct parse *p = state->input;
	struct gf_error err;
	int rc = gf_setting_check(p->command, p->cli, &err);

	if (!rc && p->command->check)
		rc = p->command->check(p->arguments, &err);
	if (rc < 0)
		argp_error(state, "%s", err.text);
}

/* Whether that is how the option, or the key of one, is named; keys are taken with - for _, too. */
static bool is_named(const struct argp_option *o, const char *word, size_t n)
{
	for (size_t i = 0; o->name && i < n; i++)
		if (o->name[i] != word[i] && !(o->name[i] == '_' && word[i] == '-'))
			return false;
	return o->name && o->name[n] == (o->key == KEY_WORDS ? '=' : '\0');
}

/* Refuses "--KEY" of what is a key of an option: argp would take "time" for --timeout. */
static void refuse_key(struct argp_state *state, const char *word)
{
	const struct argp_option *o = state->root_argp->options;
	const char *of = NULL;
	size_t n = strcspn(word, "=");

	for (; (o->name || o->key) && !is_named(o, word, n); o++)
		if (o->name && strncmp(o->name, KEYS_OF, strlen(KEYS_OF)) == 0)
			of = o->name + strlen(KEYS_OF);
	state->name = program_invocation_short_name; /* argp has not set it yet */
	if (o->key == KEY_WORDS && of)
		argp_error(state, "--%.*s: want an option, got a key of %.*s: write %s behind that",
			   (int)n, word, (int)strcspn(of, ":"), of, o->name);
}

static void refuse_keys(struct argp_state *state)
{
	for (int i = 1; i < state->argc && strcmp(state->argv[i], "--") != 0; i++)
		if (strncmp(state->argv[i], "--", 2) == 0)
			refuse_key(state, state->argv[i] + 2);
}

static int parse_option(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;
	struct gf_cli *cli = p->cli;
	struct gf_error err;

	switch (key) {
	case ARGP_KEY_INIT:
		refuse_keys(state);
		return 0;
	case 'o':
		if (!*arg)
			argp_error(state, "--output: want FILE, got \"\"");
		cli->output = arg;
		return 0;
	case 'q': /* of -q and -v the last one counts */
		cli->quiet = true;
		cli->verbose = 0;
		return 0;
	case 'v':
		cli->quiet = false;
		cli->verbose++;
		return 0;
	case 'h':
		print_short(p);
		return 0;
	case KEY_HELP:
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case KEY_USAGE:
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
		return 0;
	case 'V':
		printf("%s (gradflow) " GF_VERSION "\n", p->command->name);
		exit(0);
	case KEY_COMPLETION:
		print_completion(p);
		return 0;
	case ARGP_KEY_ARG:
		if (p->command->arguments)
			return ARGP_ERR_UNKNOWN; /* all at once, then */
		gf_error_set(&err, 0, "want no argument, got \"%s\"", arg);
		argp_error(state, "%s", err.text);
		return 0;
	case ARGP_KEY_ARGS:
		cli->files = (const char *const *)&state->argv[state->next];
		cli->nfiles = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		check(state);
		return 0;
	default:
		return parse_setting(key, arg, state);
	}
}

static bool parsing;

/* argp leaves by exit(0) after --help and --version, on whatever became of them. */
static void check_help(void)
{
	if (!parsing || (fflush(stdout) == 0 && !ferror(stdout)))
		return;
	fprintf(stderr, "%s: standard output: %s\n", program_invocation_short_name,
		strerror(errno));
	_exit(3);
}

#define SILENT_US 300000

/* The launcher ends a job as soon as one rank has failed. A silent rank stays until rank 0 has said
 * why, and is then ended with the job. */
static void stay(int status, void *unused)
{
	(void)unused;
	if (parsing && status)
		usleep(SILENT_US);
}

/* The same with nothing printed: every rank takes the same way out of a bad command line, before
 * MPI starts, and one of them says why. */
static void parse_silently(const struct argp *argp, int argc, char **argv, struct parse *p)
{
	int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);

	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		exit(3);
	on_exit(stay, NULL);
	parsing = true;
	argp_parse(argp, argc, argv, ARGP_NO_HELP, NULL, p);
	parsing = false;
	fflush(stdout);
	fflush(stderr);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	setvbuf(stderr, NULL, _IONBF, 0);
}

/* No file that is opened later takes the place of a stream that is closed. To use that stream
 * remains an error. */
static void fill_closed_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

bool gf_cli_given(const struct gf_cli *cli, const char *name)
{
	const struct gf_command *c = cli->command;

	for (size_t i = 0; i < c->nsettings; i++)
		if (!strcmp(c->settings[i].name, name))
			return cli->given[i];
	assert(!"a rule names a setting that is none");
	return false;
}

void gf_cli_parse(const struct gf_command *command, int argc, char **argv, void *arguments)
{
	struct parse p = {command, arguments, arguments};
	struct argp_option *options = options_of(command, arguments, false);
	const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.args_doc = command->arguments,
		.doc = command->help,
	};

	fill_closed_streams();
	memset(p.cli, 0, sizeof(*p.cli));
	p.cli->command = command;
	if (command->ranked)
		gf_cli_start_hint(p.cli);
	argp_err_exit_status = 2;
	if (p.cli->rank > 0) {
		parse_silently(&argp, argc, argv, &p);
	} else {
		atexit(check_help);
		parsing = true;
		errno = argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &p);
		gf_heap_need(errno ? NULL : options);
		parsing = false;
	}
	free_options(options);
}
