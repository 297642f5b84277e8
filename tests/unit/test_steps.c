/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that follow from the length of an epoch or a run. */
#include "base/steps.h"

#include <string.h>

#include "base/array.h"
#include "test.h"

/* In epochs of 40 steps, of which a run has 10. */
static const struct {
	const char *text;
	const char *back; /* as it is printed; "": KNOWN */
	size_t steps;
	const char *error;
} cases[] = {
	{"0", "", 0, NULL},
	{"100", "", 100, NULL},
	{"5%", "5%", 20, NULL},
	{"0.1%", "0.1%", 0, NULL},
	{"100%", "100%", 400, NULL},
	{"0%", "", 0, NULL},
	{"4epochs", "4 epochs", 160, NULL},
	{"1 epoch", "1 epochs", 40, NULL},
	{"0.5 epochs", "0.5 epochs", 20, NULL},
	{"101%", NULL, 0, "want a number from 0 to 100, got \"101\""},
	{"-1", NULL, 0, "want steps, epochs or a share of the run (100, 4epochs, 5%), got -1"},
	{"%", NULL, 0, "want steps, epochs or a share of the run (100, 4epochs, 5%), got %"},
	{"4 weeks", NULL, 0,
	 "want steps, epochs or a share of the run (100, 4epochs, 5%), got "
	 "4 weeks"},
};

int main(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const char *text = cases[i].text;
		struct gf_steps_part part = {0};
		struct gf_text back = {0};
		struct gf_error err = {""};
		size_t steps = 7;
		int rc = gf_steps_parse(text, &steps, &part, &err);

		if (cases[i].error) {
			EXPECT(rc < 0 && strcmp(err.text, cases[i].error) == 0, "%s: %s", text,
			       err.text);
			EXPECT(steps == 7, "%s: %zu", text, steps);
			continue;
		}
		gf_steps_text(&part, &back);
		EXPECT(rc == 0, "%s: %s", text, err.text);
		EXPECT(strcmp(back.data ? back.data : "", cases[i].back) == 0, "%s: %s", text,
		       back.data);
		gf_steps_settle(&steps, &part, 0, 0);
		EXPECT((part.of == GF_STEPS_KNOWN) == !*cases[i].back, "%s: settled by nothing",
		       text);
		gf_steps_settle(&steps, &part, 40, 400);
		EXPECT(steps == cases[i].steps && part.of == GF_STEPS_KNOWN, "%s: %zu steps", text,
		       steps);
		gf_text_release(&back);
	}
	return TEST_END();
}
