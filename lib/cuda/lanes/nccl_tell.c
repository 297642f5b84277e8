/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What NCCL is told by its environment. It looks at NCCL_ALGO and NCCL_PROTO for each communicator
 * (ncclTopoTuneModel of its src/graph/tuning.cc), so these are swapped while one is made. Numbers
 * it remembers from the first look on (NCCL_PARAM of its src/include/param.h), so channels go by
 * ncclConfig_t, and a number in the environment would come before these.
 */
#include "cuda/lanes/nccl.h"

#include "base/heap.h"

static const char *const words[] = {"NCCL_ALGO", "NCCL_PROTO"};
static const char *const numbers[] = {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_NCHANNELS",
				      "NCCL_MAX_NCHANNELS", NULL};

static void put(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* NCCL_ALGO wants any case, but no "_". */
static void put_word(const char *name, const char *word)
{
	char spelt[32];
	size_t n = 0;

	for (; *word && n < sizeof(spelt) - 1; word++)
		if (*word != '_')
			spelt[n++] = *word;
	spelt[n] = '\0';
	put(name, spelt);
}

int gf_nccl_tell(struct gf_nccl_tuning *told, struct gf_error *err)
{
	const char *const values[] = {told->algorithm, told->protocol};

	for (size_t i = 0; told->channels && numbers[i]; i++)
		if (getenv(numbers[i]))
			return gf_error_set(err, -EINVAL,
					    "want %s unset, which NCCL puts before a variant's "
					    "channels, got %.40s",
					    numbers[i], getenv(numbers[i]));
	for (size_t i = 0; told->algorithm && i < 2; i++) {
		told->was[i] = gf_xstrdup_or_null(getenv(words[i]));
		put_word(words[i], values[i]);
		told->holds = true;
	}
	return 0;
}

void gf_nccl_untell(struct gf_nccl_tuning *told)
{
	for (size_t i = 0; told->holds && i < 2; i++) {
		put(words[i], told->was[i]);
		free(told->was[i]);
		told->was[i] = NULL;
	}
	told->holds = false;
}

void gf_nccl_remark(struct gf_text *out)
{
	for (size_t i = 0; i < 2; i++)
		if (getenv(words[i]))
			gf_text_addf(out,
				     "%s=%s of the environment holds for library:default, not for "
				     "the variants that have their own\n",
				     words[i], getenv(words[i]));
}
