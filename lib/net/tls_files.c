// tls_files.c: watches certificate, key and client authorities.
#include "net/tls_files.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/tls_server.h"

enum { LOOK_MS = 2000, N_FILES = 3 };

struct version {
    dev_t dev;
    ino_t ino;
    off_t size;
    int64_t changed_s, changed_ns;
};

struct tls_files {
    struct tls_server_conf conf;
    struct ssl_ctx_st *ctx;
    _Atomic int64_t expires;      // of ctx; other threads read it
    struct version seen[N_FILES]; // when they were loaded last
    uv_timer_t look;
};

static struct version version_of(const char *path)
{
    struct stat st;

    if (!path || stat(path, &st) != 0)
        return (struct version){0};
    return (struct version){st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec,
                            st.st_mtim.tv_nsec};
}

static bool is_same(const struct version *a, const struct version *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}

static void look_at(const struct tls_files *t, struct version found[N_FILES])
{
    found[0] = version_of(t->conf.cert);
    found[1] = version_of(t->conf.key);
    found[2] = version_of(t->conf.client_ca);
}

void tls_files_reload(struct tls_files *t)
{
    struct ssl_ctx_st *fresh;
    struct fault f;

    look_at(t, t->seen); // before loading: a change while loading is found the next time
    if (tls_server_load(&fresh, &t->conf, &f) != 0) {
        log_warn("tls.reload_failed", "why=\"%s\"", f.text);
        return;
    }
    tls_server_unref(t->ctx);
    t->ctx = fresh;
    atomic_store(&t->expires, tls_server_expires(fresh));
    log_info("tls.reloaded", "cert=\"%s\"", t->conf.cert);
}

static void on_tls_files_due(uv_timer_t *look)
{
    struct tls_files *t = look->data;
    struct version now[N_FILES];
    bool same = true;

    look_at(t, now);
    for (unsigned i = 0; i < N_FILES; i++)
        same = same && is_same(&now[i], &t->seen[i]);
    if (!same)
        tls_files_reload(t);
}

int tls_files_open(struct tls_files **out, uv_loop_t *loop, const struct tls_server_conf *conf,
                   struct fault *f)
{
    struct tls_files *t = mem_new(struct tls_files);

    *out = NULL;
    t->conf = *conf;
    look_at(t, t->seen);
    int rc = tls_server_load(&t->ctx, conf, f);
    if (rc != 0) {
        free(t);
        return rc;
    }
    atomic_store(&t->expires, tls_server_expires(t->ctx));
    uv_timer_init(loop, &t->look);
    t->look.data = t;
    uv_timer_start(&t->look, on_tls_files_due, LOOK_MS, LOOK_MS);
    uv_unref((uv_handle_t *)&t->look);
    *out = t;
    return 0;
}

const _Atomic int64_t *tls_files_expires(const struct tls_files *t) { return &t->expires; }

struct ssl_ctx_st *tls_files_ref(struct tls_files *t) { return tls_server_ref(t->ctx); }

static void on_tls_files_closed(uv_handle_t *handle) { free(handle->data); }

void tls_files_close(struct tls_files *t)
{
    if (!t)
        return;
    tls_server_unref(t->ctx);
    t->ctx = NULL;
    uv_close((uv_handle_t *)&t->look, on_tls_files_closed);
}
