/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_TWO_MESSAGES_H
#define GF_TESTS_TWO_MESSAGES_H

#include "documents/stream.h"
#include "json/record.h"
#include "test.h"
#include "lists/gf_document_formats.h"

/* A plan of two tensors, a message each. The caller releases it. */
static struct gf_plan two_messages(void)
{
	static const char text[] =
		"{\"format\": \"gf-plan\", \"version\": 1, \"policy\": \"wfbp\", \"ranks\": 2, "
		"\"lanes\": 1, \"model\": {\"name\": \"two\", \"device\": \"cpu\", "
		"\"batch_per_rank\": 4, \"forward_s\": 1.0, \"backward_s\": 2.0, \"update_s\": "
		"0.5, \"overlap_slowdown\": 2.0}, \"network\": {\"ranks\": 2, \"allreduce\": "
		"[{\"algorithm\": \"ring\", \"startup_s\": 0.5, \"per_byte_s\": 0.125}]}, "
		"\"tensors\": [{\"name\": \"b\", \"count_elems\": 1, \"dtype\": \"f32\", "
		"\"ready_s\": 0.5, \"type\": \"normal\"}, {\"name\": \"a\", \"count_elems\": 2, "
		"\"dtype\": \"f32\", \"ready_s\": 2.0, \"type\": \"normal\"}], \"messages\": "
		"[{\"first\": 0, \"last\": 0, \"mode\": \"normal\", \"release\": \"ready\", "
		"\"half\": \"all\", \"algorithm\": \"ring\", \"codec\": \"f32\"}, {\"first\": 1, "
		"\"last\": 1, \"mode\": \"normal\", \"release\": \"ready\", \"half\": \"all\", "
		"\"algorithm\": \"ring\", \"codec\": \"f32\"}], \"predicted\": {\"iteration_s\": "
		"6.0, \"compute_s\": 3.5, \"exposed_comm_s\": 2.5, \"lower_bound_s\": 5.0, "
		"\"messages\": [{\"ready_s\": 1.5, \"start_s\": 1.5, \"end_s\": 2.5}, "
		"{\"ready_s\": 4.0, \"start_s\": 4.0, \"end_s\": 5.5}]}}";
	struct gf_plan plan = {0};
	struct gf_json *root = NULL;
	struct gf_error err = {""};
	int rc = gf_json_parse(text, strlen(text), "two", &root, &err);

	if (!rc)
		rc = gf_document_read(root, "two", &gf_document_plan, &plan, &err);
	EXPECT(rc == 0, "%s", err.text);
	gf_json_free(root);
	return plan;
}

#endif
