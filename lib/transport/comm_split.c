/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CHANNELS. The whole has the even channels and a group the odd ones, so that a tag says whose
 * message it is. The library's own channels of a group lie below those of the whole.
 *
 * PROGRESS. A call of one view also moves on what the other has under way. So `poll` may say that
 * nothing has come only if neither view has driven progress since this one looked last: each drive
 * is counted.
 */
#include "transport/comm.h"

#include <pthread.h>

#include "base/heap.h"
#include "transport/transport.h"

struct shared {
	struct gf_comm *c;
	pthread_mutex_t lock;
	uint64_t drives;
	int users;
};

struct view {
	struct gf_comm comm;
	struct gf_comm_ops ops;
	struct shared *s;
	int first; /* rank of c that is this view's rank 0 */
	unsigned odd;
	uint64_t drives; /* when it looked last */
	uint64_t waits;  /* of its own, when it last asked c's on_wait */
};

static struct view *of(struct gf_comm *c)
{
	return c->priv;
}

static struct gf_comm *enter(struct view *v)
{
	pthread_mutex_lock(&v->s->lock);
	return v->s->c;
}

static int leave(struct view *v, int rc)
{
	if (v->s->c->broken)
		v->comm.broken = true;
	pthread_mutex_unlock(&v->s->lock);
	return rc;
}

static void drive(struct view *v)
{
	if (v->drives == v->s->drives)
		v->drives++;
	v->s->drives++;
}

static uint32_t channel_of(const struct view *v, uint32_t channel)
{
	if (channel > GF_CHANNEL_LAST)
		return channel - v->odd * GF_CHANNELS_OWN;
	return 2 * channel + v->odd;
}

static uint64_t tag_of(const struct view *v, uint64_t tag)
{
	return gf_tag(channel_of(v, (uint32_t)(tag >> 32)), (uint32_t)tag);
}

/* clang-format off */
#define SENDS(call)                                                            \
static int view_##call(struct gf_comm *c, int peer, uint64_t tag,              \
		       const void *data, size_t size_bytes,                    \
		       struct gf_comm_request **request, struct gf_error *err) \
{                                                                              \
	struct view *v = of(c);                                                \
	struct gf_comm *all = enter(v);                                        \
	return leave(v, all->ops->call(all, v->first + peer, tag_of(v, tag),   \
				       data, size_bytes, request, err));       \
}
SENDS(isend)
SENDS(isend_lent)
SENDS(isend_back)
/* clang-format on */

static int view_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		      struct gf_comm_request **request, struct gf_error *err)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);

	return leave(v, all->ops->irecv(all, v->first + peer, tag_of(v, tag), data, size_bytes,
					request, err));
}

/* What it answers does not change. */
static bool view_reduces_from(struct gf_comm *c, int peer)
{
	struct view *v = of(c);

	return v->s->c->ops->reduces_from(v->s->c, v->first + peer);
}

/* clang-format off */
#define REDUCES(call)                                                          \
static int view_##call(struct gf_comm *c, int peer, uint64_t tag, void *data,  \
		       size_t count_elems, const struct gf_element *element,   \
		       struct gf_comm_request **request, struct gf_error *err) \
{                                                                              \
	struct view *v = of(c);                                                \
	struct gf_comm *all = enter(v);                                        \
	return leave(v, all->ops->call(all, v->first + peer, tag_of(v, tag),   \
				       data, count_elems, element, request,    \
				       err));                                  \
}
REDUCES(irecv_reduce)
REDUCES(irecv_reduce_back)
/* clang-format on */

static int view_test(struct gf_comm *c, struct gf_comm_request *request, struct gf_error *err)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);
	const uint64_t before = all->moved_bytes;
	int rc = all->ops->test(all, request, err);

	drive(v);
	c->moved_bytes += all->moved_bytes - before;
	return leave(v, rc);
}

static bool view_is_ripe(const struct gf_comm *c, const struct gf_comm_request *r)
{
	struct view *v = c->priv;
	struct gf_comm *all = enter(v);

	return leave(v, all->ops->is_ripe(all, r));
}

static bool view_poll(struct gf_comm *c)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);
	bool news = all->ops->poll(all);

	if (news)
		v->s->drives++;
	news = v->drives != v->s->drives;
	v->drives = v->s->drives;
	return leave(v, news);
}

static void view_cancel(struct gf_comm *c, struct gf_comm_request *request)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);

	all->ops->cancel(all, request);
	leave(v, 0);
}

static int view_probe(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);
	int rc = all->ops->probe(all, tag_of(v, tag), peer, err);

	drive(v);
	if (rc > 0)
		*peer -= v->first;
	return leave(v, rc);
}

static bool view_is_gone(struct gf_comm *c, int rank)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);

	return leave(v, all->ops->is_gone(all, v->first + rank));
}

static int view_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
			   const struct gf_element *element, struct gf_comm_request **request,
			   struct gf_error *err)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);

	return leave(v, all->ops->iallreduce(all, data, count_elems, element, request, err));
}

static int view_team(struct gf_comm *c, uint32_t channel, int first, int stride, int size,
		     struct gf_comm_team **team, struct gf_error *err)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);

	return leave(v, all->ops->team(all, channel_of(v, channel), v->first + first, stride, size,
				       team, err));
}

static int view_iteam(struct gf_comm *c, struct gf_comm_team *team, bool gathers, void *data,
		      size_t count_elems, const struct gf_element *element,
		      struct gf_comm_request **request, struct gf_error *err)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);

	return leave(v,
		     all->ops->iteam(all, team, gathers, data, count_elems, element, request, err));
}

static void view_abort(struct gf_comm *c, int status)
{
	struct gf_comm *all = of(c)->s->c;

	all->ops->abort(all, status);
}

static int view_buffer_alloc(struct gf_comm *c, size_t size_bytes, void **data,
			     struct gf_error *err)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);

	return leave(v, all->ops->buffer_alloc(all, size_bytes, data, err));
}

static void view_buffer_free(struct gf_comm *c, void *data)
{
	struct view *v = of(c);
	struct gf_comm *all = enter(v);

	all->broken |= c->broken; /* memory of messages under way stays */
	all->ops->buffer_free(all, data);
	leave(v, 0);
}

static void view_leave(struct gf_comm *c, struct gf_left *memory)
{
	struct view *v = of(c);

	gf_comm_leave(enter(v), memory);
	leave(v, 0);
}

/* c's, where the view has none of its own: it tells waits apart. */
static int on_wait(void *ctx, struct gf_error *err)
{
	struct view *v = ctx;
	struct gf_comm *all = enter(v);

	all->waits += v->comm.waits != v->waits;
	v->waits = v->comm.waits;
	return leave(v, all->on_wait(all->on_wait_ctx, err));
}

static void view_close(struct gf_comm *c)
{
	GF_FREED struct view *v = of(c);
	struct shared *s = v->s;
	bool last;

	pthread_mutex_lock(&s->lock);
	s->c->broken |= c->broken;
	last = --s->users == 0;
	pthread_mutex_unlock(&s->lock);
	if (last) {
		pthread_mutex_destroy(&s->lock);
		free(s);
	}
}

static const struct gf_comm_ops view_ops = {
	.isend = view_isend,
	.irecv = view_irecv,
	.reduces_from = view_reduces_from,
	.irecv_reduce = view_irecv_reduce,
	.isend_lent = view_isend_lent,
	.irecv_reduce_back = view_irecv_reduce_back,
	.isend_back = view_isend_back,
	.test = view_test,
	.is_ripe = view_is_ripe,
	.poll = view_poll,
	.cancel = view_cancel,
	.probe = view_probe,
	.is_gone = view_is_gone,
	.iallreduce = view_iallreduce,
	.team = view_team,
	.iteam = view_iteam,
	.abort = view_abort,
	.leave = view_leave,
	.buffer_alloc = view_buffer_alloc,
	.buffer_free = view_buffer_free,
	.close = view_close,
};

/* An operation that c lacks, its views lack, too. */
#define DROP(op)                                                                                   \
	do {                                                                                       \
		if (!s->c->ops->op)                                                                \
			v->ops.op = NULL;                                                          \
	} while (0)

/* at: of each rank of c, the lowest rank on its host and on its kernel. */
static struct gf_comm *view(struct shared *s, int first, int ranks, unsigned odd,
			    const int (*at)[2])
{
	struct view *v = gf_xcalloc(1, sizeof(*v));
	struct gf_comm *c = &v->comm;
	const int *own = at[s->c->rank];

	v->s = s;
	v->first = first;
	v->odd = odd;
	v->ops = view_ops;
	v->ops.name = s->c->ops->name;
	DROP(reduces_from);
	DROP(irecv_reduce);
	DROP(isend_lent);
	DROP(irecv_reduce_back);
	DROP(isend_back);
	DROP(is_ripe);
	DROP(poll);
	DROP(probe);
	DROP(is_gone);
	DROP(iallreduce);
	DROP(team);
	DROP(iteam);
	if (ranks < s->c->ranks) /* a library's is of all ranks */
		v->ops.iallreduce = NULL;
	*c = *s->c;
	c->ops = &v->ops;
	c->priv = v;
	c->rank = s->c->rank - first;
	c->ranks = ranks;
	c->on_wait = s->c->on_wait ? on_wait : NULL;
	c->on_wait_ctx = v;
	c->launcher = NULL;
	c->left = NULL;
	if (!v->ops.iallreduce)
		c->library[0] = '\0';
	c->host = c->machine = -1;
	c->local_rank = c->local_ranks = 0;
	for (int rank = 0; rank < ranks; rank++) {
		if (at[first + rank][1] == own[1] && c->machine < 0)
			c->machine = rank;
		if (at[first + rank][0] != own[0])
			continue;
		if (!c->local_ranks++)
			c->host = rank;
		c->local_rank += rank < c->rank;
	}
	s->users++;
	return c;
}

int gf_comm_split(struct gf_comm *c, int group_ranks, struct gf_comm **whole,
		  struct gf_comm **group, struct gf_error *err)
{
	const int own[2] = {c->host, c->machine};
	int(*at)[2] = gf_xcalloc((size_t)c->ranks, sizeof(*at));
	struct shared *s;
	int rc = gf_comm_allgather(c, own, sizeof(own), at, err);

	if (!rc) {
		s = gf_xcalloc(1, sizeof(*s));
		s->c = c;
		pthread_mutex_init(&s->lock, NULL);
		*whole = view(s, 0, c->ranks, 0, at);
		*group = view(s, c->rank / group_ranks * group_ranks, group_ranks, 1, at);
	}
	free(at);
	return rc;
}
