/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_SETTINGS_H
#define GF_CLI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/registry.h"

struct gf_cli;
struct gf_command;
struct gf_field;
struct gf_record;

/*
 * To add an option: a row in its command's table, whose help is in the command's page, too; what
 * else there is to say stands in man/gf-x.1.in (man/page.sh). A combination in which it would be
 * ignored gets a row in the command's `rules`.
 *
 * An option as a row of a table: how it is written, where its checked value goes in the command's
 * arguments, and what a shell offers for it.
 */
enum gf_setting_kind {
	GF_SETTING_TEXT,   /* const char * */
	GF_SETTING_WHOLE,  /* size_t in [low, high] */
	GF_SETTING_INT,    /* int in [low, high] */
	GF_SETTING_REAL,   /* double in [low, high] */
	GF_SETTING_TIME,   /* double, seconds; as people write it ("60s") */
	GF_SETTING_RATE,   /* double, bytes per second ("10Gb/s") */
	GF_SETTING_FLOPS,  /* double, FLOP per second in [low, high] ("15TF") */
	GF_SETTING_SIZE,   /* size_t, bytes >= low; as people write it ("4M") */
	GF_SETTING_CHOICE, /* int: which of `names` */
	GF_SETTING_FLAG,   /* bool, set to true */
	GF_SETTING_OWN,    /* what `store` makes of it */
	/* Several, separated by commas: allocated, and how many there are is a size_t at
	 * offset2. */
	GF_SETTING_REALS, /* double *, in [low, high] */
	GF_SETTING_INTS,  /* int *, in [low, high], each once */
	GF_SETTING_RATES, /* double *, bytes per second, each once */
	/*
	 * "NAME:KEY=VALUE,KEY=VALUE", a part of it or both (json/keys.h). NAME is an int at offset:
	 * which of from[0] or of `names`; where there are neither, it is the value of the first
	 * field of `keys`, or if people can set that by its key, there is no NAME. The keys of the
	 * record `keys` go to the struct at offset2. Where the entries of from[0] begin as struct
	 * gf_entry does, their keys are checked, and all keys are kept as a const char * at
	 * keys_offset.
	 */
	GF_SETTING_ENTRY,
	/* No setting: those of the fields of `keys` that have an option (gf_setting_expand). */
	GF_SETTING_FIELDS,
};

/*
 * Shells complete by `arg`, the name of the argument in --help. A name that ends in FILE takes
 * paths, DIR takes folders, LIST takes words with commas between. The words come from `names`, from
 * registries, and from the files of share/<share>, in place of which a path may stand.
 */
struct gf_setting {
	const char *name, *arg; /* without "--"; arg NULL for a flag */
	int group;              /* from 1: of --help (cli/command.h) */
	enum gf_setting_kind kind;
	size_t offset;
	/* Behind it --help adds in brackets what the command's arguments hold by default, or what
	 * `defaults` prints, unless the text ends in brackets. */
	const char *help;
	double low, high;
	/* NULL-terminated: all there are for a choice, else suggestions */
	const char *const *names;
	/* (optional) other words for names of a choice: pairs, NULL-ended */
	const char *const (*words)[2];
	const char *alias; /* (optional) another name, not in --help */
	/* `to` is the place at offset; 0, or negative with what was wanted */
	int (*store)(const char *arg, void *to, struct gf_error *err);
	size_t offset2;
	int letter; /* 'a': -a, too; 0: none */
	struct gf_registry from[2];
	const char *share;
	const struct gf_record *keys; /* ENTRY; FIELDS: of the struct at offset */
	size_t keys_offset;           /* ENTRY; 0: the entries have no keys of their own */
	/* ENTRY; or 0. Where NAME is no entry's and keys follow, all of it is kept as a const char
	 * * there: what the caller describes. */
	size_t own_offset;
	/* (optional) Appends the defaults of a field of `keys`. */
	void (*defaults)(const struct gf_field *f, struct gf_text *out);
	const struct gf_field *field; /* that it was made of; or NULL */
	const char *otherwise; /* the argument where none is given; NULL: there must be one */
	bool repeats;          /* each one given adds to the others */
	bool written;          /* the path of a file that the command writes */
	bool hidden;           /* not in --help and completions */
	bool often;            /* in -h, too */
};

/* Puts the options of a document's keys (json/record.h) in place of each row of GF_SETTING_FIELDS,
 * in its group; returns how many settings there are then, at most GF_CLI_SETTINGS_MOST. */
size_t gf_setting_expand(const struct gf_setting *rows, size_t n, struct gf_setting *settings);

/* Stores an argument: 0, or -EINVAL with what was wanted. */
int gf_setting_store(const struct gf_setting *s, const char *arg, void *arguments,
		     struct gf_error *err);

/*
 * Refuses options that would be ignored. Each of `options` needs one of `with` on the command line,
 * and excludes all of `without` but itself. All three are names with blanks between, or NULL;
 * `without` may be "*", every other option, or "* but NAMES".
 */
struct gf_setting_rule {
	const char *options, *with, *without;
};
/* Whether such a list has that name. */
bool gf_setting_listed(const char *names, const char *name);
/* -EINVAL at the command's first rule that is broken, and at two files to be written that are
 * one. */
int gf_setting_check(const struct gf_command *command, const struct gf_cli *cli,
		     struct gf_error *err);

#endif
