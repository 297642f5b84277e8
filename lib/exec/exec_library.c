/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run without steps: the transport's own all-reduce. Some codecs have
 * values that are numbers of a type that the library knows (f16 and bf16). With
 * such a codec, the whole message is encoded once, reduced in that type, and
 * decoded.
 */
#include <errno.h>

#include "codec/encode.h"
#include "exec/exec_parts.h"

/* The element that a codec's encoded values are, as numbers. */
static int number_of(const struct gf_codec *codec, enum gf_op op,
		     struct gf_element *wire, struct gf_error *err)
{
	if (!codec->adds)
		return gf_error_set(err, -ENOTSUP,
				    "library: the transport reduces numbers, "
				    "and what %s puts on the wire are none",
				    codec->name);
	*wire = gf_element_number(codec->dtype, op);
	return 0;
}

int gf_exec_library_prepare(struct gf_exec_run *run, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	const struct gf_codec *codec = run->element.codec;
	void *memory;
	int rc;

	if (!c->ops->iallreduce)
		return gf_error_set(err, -ENOTSUP,
				    "transport %s has no all-reduce of its own "
				    "between these %d ranks",
				    c->ops->name, c->ranks);
	if (!run->element.number)
		return gf_error_set(err, -ENOTSUP,
				    "library: the transport reduces numbers, "
				    "not sparse sets");
	run->wire = run->element;
	if (!codec)
		return 0;
	rc = number_of(codec, run->element.op, &run->wire, err);
	if (rc)
		return rc;
	rc = c->ops->buffer_alloc(
		c, gf_codec_wire_bytes(codec, run->count_elems), &memory, err);
	if (!rc)
		run->outgoing.memory = memory;
	return rc;
}

int gf_exec_library_start(struct gf_exec_run *run, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	double began_s = gf_exec_coding_begin(run);
	void *data = run->data;

	run->left = 1;
	if (run->element.codec) {
		data = run->outgoing.memory;
		gf_codec_encode(run->element.codec, data,
				(const float *)(const void *)run->data,
				run->count_elems);
	}
	gf_exec_coding_end(run, began_s);
	return c->ops->iallreduce(c, data, run->count_elems, &run->wire,
				  &run->library, err);
}

int gf_exec_library_progress(struct gf_exec_run *run, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	int rc = c->ops->test(c, run->library, err);
	double began_s;

	if (!rc)
		return 0;
	run->library = NULL;
	if (rc < 0)
		return rc;
	began_s = gf_exec_coding_begin(run);
	if (run->element.codec)
		gf_codec_decode(run->element.codec, (float *)(void *)run->data,
				run->outgoing.memory, run->count_elems);
	gf_exec_coding_end(run, began_s);
	run->left = 0;
	run->moves++;
	return 0;
}
