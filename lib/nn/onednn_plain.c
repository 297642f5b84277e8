/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

#include <string.h>

#include "base/heap.h"
#include "nn/ref.h"

/*
 * Layers that move values more than they compute run as the reference does, on plain memory,
 * between oneDNN's own; so do the LSTM and attention, with oneDNN's matrix product.
 */
struct gf_onednn_plain_layer {
	struct gf_ref_io io;
	dnnl_memory_t *in, *din;
	dnnl_memory_t out, dout;
};

static float *address(dnnl_memory_t memory)
{
	void *handle = NULL;

	if (memory)
		dnnl_memory_get_data_handle(memory, &handle);
	return handle;
}

static void run_forward(struct gf_onednn *p, size_t l)
{
	struct gf_onednn_plain_layer *plain = p->plain[l];
	struct gf_ref_io *io = &plain->io;

	gf_ref_io_bind(io, p->base[GF_ONEDNN_PARAMS], NULL);
	for (size_t i = 0; i < io->layer->ninputs; i++)
		io->in[i] = address(plain->in[i]);
	io->out = address(plain->out);
	gf_ref_layers[io->layer->type]->forward(io);
}

static void run_backward(struct gf_onednn *p, size_t l)
{
	struct gf_onednn_plain_layer *plain = p->plain[l];
	struct gf_ref_io *io = &plain->io;

	gf_ref_io_bind(io, p->base[GF_ONEDNN_PARAMS], p->grads);
	for (size_t i = 0; i < io->layer->ninputs; i++) {
		int from = io->layer->inputs[i];

		io->din[i] = address(plain->din[i]);
		if (io->din[i])
			memset(io->din[i], 0,
			       p->batch * sizeof(float) *
				       gf_shape_elems(&p->net->model->layers[from].out));
	}
	io->dout = address(plain->dout);
	gf_ref_layers[io->layer->type]->backward(io);
}

static void multiply(const struct gf_ref_product *p)
{
	dnnl_sgemm(p->a.transposed ? 'T' : 'N', p->b.transposed ? 'T' : 'N', (dnnl_dim_t)p->m,
		   (dnnl_dim_t)p->n, (dnnl_dim_t)p->k, 1, p->a.at, (dnnl_dim_t)p->a.pitch, p->b.at,
		   (dnnl_dim_t)p->b.pitch, p->adds, p->c, (dnnl_dim_t)p->pitch);
}

static void forward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	const struct gf_ref_layer *ops = gf_ref_layers[layer->type];
	struct gf_onednn_plain_layer *plain = gf_xcalloc(1, sizeof(*plain));
	const_dnnl_memory_desc_t out = gf_onednn_samples(p, &layer->out);

	p->plain[l] = plain;
	gf_ref_io_init(&plain->io, p->net, l);
	plain->io.multiply = multiply;
	plain->in = gf_xcalloc(layer->ninputs, sizeof(*plain->in));
	plain->din = gf_xcalloc(layer->ninputs, sizeof(*plain->din));
	for (size_t i = 0; i < layer->ninputs; i++) {
		struct gf_onednn_value *v = gf_onednn_input(p, l, i);

		plain->in[i] = gf_onednn_as(p, &p->forward, v->data, gf_onednn_plain_of(p, v->md));
	}
	plain->out = gf_onednn_output(p, l, out)->data;
	if (ops->saved_bytes) {
		size_t bytes = ops->saved_bytes(layer, p->batch);

		plain->io.saved = calloc(bytes, 1);
		if (!plain->io.saved)
			gf_onednn_ok(p, dnnl_out_of_memory, "memory");
		gf_onednn_count(p, bytes);
	}
	gf_onednn_add_call(p, &p->forward, run_forward, l);
}

static void backward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	struct gf_onednn_plain_layer *plain = p->plain[l];

	plain->dout = p->values[l]->gradient;
	for (size_t i = 0; i < layer->ninputs; i++) {
		const_dnnl_memory_desc_t md = gf_onednn_input(p, l, i)->md;

		if (gf_onednn_wants_gradient(p, l, i))
			plain->din[i] = gf_onednn_target(p, l, i, gf_onednn_plain_of(p, md));
	}
	gf_onednn_add_call(p, &p->backward, run_backward, l);
	gf_onednn_report(p, l);
	for (size_t i = 0; i < layer->ninputs; i++)
		if (plain->din[i])
			gf_onednn_gave(p, l, i, plain->din[i]);
}

void gf_onednn_free_plain(struct gf_onednn_plain_layer *plain)
{
	if (!plain)
		return;
	free(plain->io.saved);
	gf_ref_io_release(&plain->io);
	free(plain->in);
	free(plain->din);
	free(plain);
}

const struct gf_onednn_layer gf_onednn_plain_ops = {
	.forward = forward,
	.backward = backward,
};
