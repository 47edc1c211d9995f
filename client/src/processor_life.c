// processor_life.c: creates, stops and frees a processor.
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/id.h"
#include "base/mem.h"
#include "fail.h"
#include "processor_int.h"

enum { TICK_MS = 50 };

static void on_start(struct mailbox_item *item);
static void on_processor_tick(uv_timer_t *timer);
static void on_processor_stop(struct mailbox_item *item);
static void on_close(struct mailbox_item *item);
static void on_tick_closed(uv_handle_t *handle);
static void processor_dispose(struct queen_processor *p);

// Unlike the monotonic clock it advances while the machine sleeps, because claims expire then,
// too.
static uint64_t boot_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void set_default(unsigned *value, unsigned otherwise)
{
    if (*value == 0)
        *value = otherwise;
}

static void fill_defaults(struct queen_processor_options *o)
{
    static const unsigned pauses_ms[] = {1000, 5000, 15000};

    set_default(&o->expiry_s, 60);
    set_default(&o->look_ms, 500);
    set_default(&o->batch, 100);
    set_default(&o->threads, 4);
    set_default(&o->checkpoint_ms, 5000);
    set_default(&o->dedup_count, 1000);
    set_default(&o->dedup_ms, 300000);
    if (!o->retry.pauses_ms) {
        o->retry.pauses_ms = pauses_ms;
        o->retry.n_pauses = countof(pauses_ms);
    }
}

static char *make_owner(void)
{
    char host[200] = "host", text[255];

    (void)gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text, "%s-%d-%06x", host, (int)getpid(),
             (unsigned)(id_random_u64() & 0xffffff));
    return mem_strndup(text, strlen(text));
}

static char *make_path(const char *group, const char *queue)
{
    char *g = queen_escape(group), *q = queen_escape(queue);
    struct buf path = {0};

    buf_printf(&path, "/api/v1/consumer-groups/%s/queues/%s/owners", g, q);
    buf_putc(&path, '\0');
    free(g);
    free(q);
    return path.ptr;
}

static char *processor_copy(const char *text)
{
    return text ? mem_strndup(text, strlen(text)) : NULL;
}

struct queen_processor *queen_processor_new(struct queen_client *c,
                                            const struct queen_processor_options *o,
                                            struct queen_error *err)
{
    if (!o->queue || !o->group || !o->on_event == !o->on_events) {
        fail_set(err, QUEEN_E_ARGUMENT,
                 "a processor needs a queue, a group and one of on_event and on_events");
        return NULL;
    }
    struct queen_processor *p = mem_new(struct queen_processor);
    p->client = c;
    p->conf = *o;
    fill_defaults(&p->conf);
    p->queue = processor_copy(o->queue);
    p->group = processor_copy(o->group);
    p->owner = o->owner ? processor_copy(o->owner) : make_owner();
    p->mode = processor_copy(o->subscription_mode ? o->subscription_mode : "all");
    p->path = make_path(p->group, p->queue);
    p->now_ms = boot_ms;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->start.deliver = on_start;
    p->stop.deliver = on_processor_stop;
    p->close.deliver = on_close;
    int rc = 0;
    if (c->has_thread && o->on_event) {
        p->threads = threads_new(p->conf.threads, assignment_handle, p, err);
        rc = p->threads ? 0 : QUEEN_E_MEMORY;
    }
    if (rc == 0 && mailbox_post(&c->mailbox, &p->start) != 0)
        rc = fail_set(err, QUEEN_E_CLOSED, "the client is closing");
    if (rc == 0)
        return p;
    processor_dispose(p);
    return NULL;
}

static void on_start(struct mailbox_item *item)
{
    struct queen_processor *p = container_of(item, struct queen_processor, start);

    uv_timer_init(p->client->loop, &p->tick);
    p->tick.data = p;
    processor_heal_init(p);
    uv_timer_start(&p->tick, on_processor_tick, 0, TICK_MS);
}

static void on_processor_tick(uv_timer_t *timer) { processor_tick(timer->data); }

void queen_processor_stats(struct queen_processor *p, struct queen_processor_stats *out)
{
    *out = (struct queen_processor_stats){
        .owned = p->n_owned,
        .handled = p->n_handled,
        .duplicates = p->n_duplicates,
        .retried = p->n_retried,
        .moved = p->n_moved,
        .dead = p->n_dead,
        .rebuilds = p->n_rebuilds,
    };
}

// ---- stopping: close all partitions, then release them, then stop ----

void queen_processor_stop(struct queen_processor *p)
{
    pthread_mutex_lock(&p->lock);
    bool first = !p->stop_posted;
    p->stop_posted = true;
    pthread_mutex_unlock(&p->lock);
    if (first)
        (void)!mailbox_post(&p->client->mailbox, &p->stop); // open: see job.c
}

static void on_processor_stop(struct mailbox_item *item)
{
    struct queen_processor *p = container_of(item, struct queen_processor, stop);

    p->stopping = true;
    for (unsigned i = 0; i < p->n_assignments; i++)
        assignment_close(p->assignments[i], QUEEN_CLOSED_STOPPED);
    processor_stop_if_done(p);
}

void processor_stop_if_done(struct queen_processor *p)
{
    if (!p->stopping || p->n_calls > 0 || p->stopped)
        return;
    for (unsigned i = 0; i < p->n_assignments; i++)
        if (p->assignments[i]->state != ASSIGN_CLOSED)
            return;
    if (!p->released) {
        p->released = true;
        processor_release(p, NULL);
        if (p->n_calls > 0)
            return;
    }
    if (p->conf.on_stopped)
        p->conf.on_stopped(p->conf.ctx);
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->closing) // queued behind a stop that may still be in the mailbox
        (void)!mailbox_post(&p->client->mailbox, &p->close);
}

void queen_processor_free(struct queen_processor *p)
{
    if (!p || client_may_block(p->client, NULL) != 0)
        return;
    queen_processor_stop(p);
    pthread_mutex_lock(&p->lock);
    while (!p->stopped)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    client_await_close(p->client, &p->close, &p->lock, &p->changed, &p->closed, &(unsigned){0});
    processor_dispose(p);
}

void queen_processor_close(struct queen_processor *p, void (*closed)(void *ctx), void *ctx)
{
    p->on_closed = closed;
    p->closed_ctx = ctx;
    p->closing = true;
    if (p->stopped)
        (void)!mailbox_post(&p->client->mailbox, &p->close);
    else
        queen_processor_stop(p);
}

static void on_close(struct mailbox_item *item)
{
    struct queen_processor *p = container_of(item, struct queen_processor, close);

    uv_close((uv_handle_t *)&p->tick, on_tick_closed);
}

static void on_tick_closed(uv_handle_t *handle)
{
    struct queen_processor *p = handle->data;

    if (p->client->has_thread) {
        pthread_mutex_lock(&p->lock);
        p->closed = true;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock); // queen_processor_free() continues
        return;
    }
    void (*closed)(void *) = p->on_closed;
    void *ctx = p->closed_ctx;
    processor_dispose(p);
    if (closed)
        closed(ctx);
}

static void processor_dispose(struct queen_processor *p)
{
    threads_free(p->threads);
    for (unsigned i = 0; i < p->n_assignments; i++) {
        dedup_free(p->assignments[i]->dedup);
        free(p->assignments[i]->name);
        free(p->assignments[i]->partition_id);
        free(p->assignments[i]->checkpoint);
        free(p->assignments[i]);
    }
    free(p->assignments);
    free(p->queue);
    free(p->group);
    free(p->owner);
    free(p->mode);
    free(p->path);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
