/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_SETTINGS_H
#define GF_CLI_SETTINGS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/cli.h"

/*
 * Options that do nothing but store a checked value, as a table: one row gives
 * argp its option, and says where in the command's arguments the value goes.
 * Row i has its letter as key, or GF_SETTING_KEY + i; options with keys of
 * their own stay below that. The command's struct gf_cli, its first child's
 * input, notes what was given.
 */
#define GF_SETTING_KEY 4096

enum gf_setting_kind {
	GF_SETTING_TEXT,   /* const char * */
	GF_SETTING_WHOLE,  /* size_t in [low, high] */
	GF_SETTING_INT,    /* int in [low, high] */
	GF_SETTING_REAL,   /* double in [low, high] */
	GF_SETTING_TIME,   /* double, seconds; as people write it ("60s") */
	GF_SETTING_SIZE,   /* size_t, bytes >= low; as people write it ("4M") */
	GF_SETTING_CHOICE, /* int: which of `names` */
	GF_SETTING_FLAG,   /* bool, set to true */
	GF_SETTING_OWN,    /* what `store` makes of it */
	GF_SETTING_REALS,  /* double *, allocated, and size_t at offset2:
			    * numbers in [low, high] separated by commas */
};

struct gf_setting {
	const char *name, *arg; /* without "--"; arg NULL for a flag */
	int group;
	enum gf_setting_kind kind;
	size_t offset;
	const char *help;
	double low, high;
	const char *const *names; /* NULL-terminated, for a choice */
	/* `to` is the place at offset; 0, or negative with what was wanted */
	int (*store)(const char *arg, void *to, struct gf_error *err);
	size_t offset2;
	int letter; /* 'a': -a, too; 0: none */
};

/* Fills nsettings + 1 options. */
void gf_settings_options(const struct gf_setting *settings, size_t nsettings,
			 struct argp_option *options);

/* For parse_opt: stores the value, or exits 2 with what was wanted.
 * ARGP_ERR_UNKNOWN for a key that is none of the table's. */
int gf_settings_parse(const struct gf_setting *settings, size_t nsettings,
		      int key, char *arg, struct argp_state *state,
		      void *arguments);
bool gf_settings_given(const struct gf_setting *settings, size_t nsettings,
		       const struct gf_cli *cli, const char *name);

/*
 * What would be ignored is refused. Each of `options` wants one of `with`
 * beside it, and none of `without` but itself; all are names with blanks
 * between, or NULL. `without` may be "*": every other one.
 */
struct gf_setting_rule {
	const char *options, *with, *without;
};
/* For parse_opt at ARGP_KEY_END: exits 2 at the first rule that is broken. */
void gf_settings_check(const struct gf_setting *settings, size_t nsettings,
		       const struct gf_setting_rule *rules, size_t nrules,
		       struct argp_state *state);

#endif
