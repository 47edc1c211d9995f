// key_table.c: the list of keys, replaced as a whole.
#include "auth/key_table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_KEY_FILE = 1024 };

struct key_entry {
    struct key_record record;
    UT_hash_handle hh;
    char text[]; // id, name, rules
};

// Read-only once it is in the table.
struct key_list {
    _Atomic unsigned n_refs;
    bool loaded, has_version;
    uint8_t version[16];
    struct key_entry *keys;  // hash by id
    struct key_entry *admin; // of the file; NULL: none
    struct rule_book *book;  // NULL: none
};

struct key_table {
    pthread_mutex_t lock; // of everything below; held for a few instructions
    struct key_list *now;
    unsigned epoch;
    LIST_HEAD(, key_watcher) watchers;
};

static struct key_entry *entry_new(const struct key_record *r)
{
    struct key_entry *e = mem_zalloc(1, sizeof *e + r->id.len + r->name.len + r->rules.len);

    e->record = *r;
    memcpy(e->text, r->id.ptr, r->id.len);
    memcpy(e->text + r->id.len, r->name.ptr, r->name.len);
    e->record.id.ptr = e->text;
    e->record.name.ptr = e->text + r->id.len;
    if (r->rules.len > 0) {
        char *rules = e->text + r->id.len + r->name.len;
        memcpy(rules, r->rules.ptr, r->rules.len);
        e->record.rules.ptr = rules;
    }
    return e;
}

struct key_list *key_list_new(void)
{
    struct key_list *l = mem_new(struct key_list);

    atomic_init(&l->n_refs, 1);
    return l;
}

void key_list_add(struct key_list *l, const struct key_record *r)
{
    struct key_entry *e;

    HASH_FIND(hh, l->keys, r->id.ptr, r->id.len, e);
    if (e)
        return;
    e = entry_new(r);
    HASH_ADD_KEYPTR(hh, l->keys, e->record.id.ptr, e->record.id.len, e);
}

void key_list_unref(struct key_list *l)
{
    struct key_entry *e, *next;

    if (!l || atomic_fetch_sub(&l->n_refs, 1) > 1)
        return;
    HASH_ITER (hh, l->keys, e, next) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        HASH_DELETE(hh, l->keys, e);
        free(e);
    }
    rule_book_unref(l->book);
    free(l->admin);
    free(l);
}

const struct key_record *key_list_find(const struct key_list *l, span id)
{
    struct key_entry *e;

    if (l->admin && span_eq(l->admin->record.id, id))
        return &l->admin->record;
    HASH_FIND(hh, l->keys, id.ptr, id.len, e);
    return e ? &e->record : NULL;
}

const struct rule_book *key_list_book(const struct key_list *l) { return l->book; }
unsigned key_list_count(const struct key_list *l) { return HASH_COUNT(l->keys); }
bool key_list_is_loaded(const struct key_list *l) { return l->loaded; }

struct key_table *key_table_new(void)
{
    struct key_table *t = mem_new(struct key_table);

    pthread_mutex_init(&t->lock, NULL);
    LIST_INIT(&t->watchers);
    t->now = key_list_new();
    return t;
}

void key_table_free(struct key_table *t)
{
    if (!t)
        return;
    key_list_unref(t->now);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void key_table_watch(struct key_table *t, struct key_watcher *w)
{
    pthread_mutex_lock(&t->lock);
    LIST_INSERT_HEAD(&t->watchers, w, link);
    pthread_mutex_unlock(&t->lock);
}

void key_table_unwatch(struct key_table *t, struct key_watcher *w)
{
    pthread_mutex_lock(&t->lock);
    LIST_REMOVE(w, link);
    pthread_mutex_unlock(&t->lock);
}

struct key_list *key_table_current(struct key_table *t)
{
    pthread_mutex_lock(&t->lock);
    struct key_list *l = t->now;
    atomic_fetch_add(&l->n_refs, 1);
    pthread_mutex_unlock(&t->lock);
    return l;
}

// With the lock held. Takes l.
static void install(struct key_table *t, struct key_list *l)
{
    struct key_watcher *w;

    key_list_unref(t->now);
    t->now = l;
    LIST_FOREACH (w, &t->watchers, link)
        w->changed(w->ctx);
}

static struct key_list *copy_without(const struct key_list *from, span id)
{
    struct key_list *l = key_list_new();
    struct key_entry *e, *next;

    l->loaded = from->loaded;
    l->book = rule_book_ref(from->book);
    l->admin = from->admin ? entry_new(&from->admin->record) : NULL;
    HASH_ITER (hh, from->keys, e, next)
        if (!span_eq(e->record.id, id))
            key_list_add(l, &e->record);
    return l;
}

void key_list_set_version(struct key_list *l, const uint8_t version[16])
{
    memcpy(l->version, version, sizeof l->version);
    l->has_version = true;
}

bool key_table_version(struct key_table *t, uint8_t version[16])
{
    pthread_mutex_lock(&t->lock);
    bool has_version = t->now->has_version;
    memcpy(version, t->now->version, sizeof t->now->version);
    pthread_mutex_unlock(&t->lock);
    return has_version;
}

unsigned key_table_epoch(struct key_table *t)
{
    pthread_mutex_lock(&t->lock);
    unsigned epoch = t->epoch;
    pthread_mutex_unlock(&t->lock);
    return epoch;
}

void key_table_changed(struct key_table *t)
{
    pthread_mutex_lock(&t->lock);
    t->epoch++;
    pthread_mutex_unlock(&t->lock);
}

bool key_table_replace(struct key_table *t, struct key_list *l, unsigned epoch)
{
    pthread_mutex_lock(&t->lock);
    bool current = epoch == t->epoch;
    if (current) {
        l->loaded = true;
        l->book = rule_book_ref(t->now->book);
        l->admin = t->now->admin ? entry_new(&t->now->admin->record) : NULL;
        install(t, l);
    }
    pthread_mutex_unlock(&t->lock);
    if (!current)
        key_list_unref(l);
    return current;
}

void key_table_drop(struct key_table *t, span id)
{
    pthread_mutex_lock(&t->lock);
    t->epoch++;
    install(t, copy_without(t->now, id));
    pthread_mutex_unlock(&t->lock);
}

// ---- the key of a file ----

static int read_key_file(const char *path, char text[MAX_KEY_FILE], size_t *n, struct fault *f)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fault_set(f, QE_CONF, "cannot open %s: %s", path, strerror(errno));
    ssize_t got = read(fd, text, MAX_KEY_FILE);
    int failed = errno;
    close(fd);
    if (got < 0)
        return fault_set(f, QE_CONF, "cannot read %s: %s", path, strerror(failed));
    *n = (size_t)got;
    return 0;
}

int key_table_read_admin(struct key_table *t, const char *path, struct fault *f)
{
    char text[MAX_KEY_FILE];
    size_t n = 0;

    int rc = read_key_file(path, text, &n, f);
    if (rc != 0)
        return rc;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    span key = str_trim((span){text, n}), id = api_key_id(key);
    if (!id.ptr)
        return fault_set(f, QE_CONF, "%s must contain an API key (make one with queen init)",
                         path);
    struct key_record r = {.id = id,
                           .name = SPAN("admin-key-file"),
                           .until_s = INT64_MAX,
                           .level = ACCESS_ADMIN,
                           .has_limits =
                               true}; // none, so that limits cannot lock the administrator out
    api_key_hash(key, r.hash);

    pthread_mutex_lock(&t->lock);
    struct key_list *l = copy_without(t->now, SPAN_NONE);
    free(l->admin);
    l->admin = entry_new(&r);
    install(t, l);
    pthread_mutex_unlock(&t->lock);
    OPENSSL_cleanse(text, sizeof text);
    return 0;
}

int key_table_read_rules(struct key_table *t, const char *path, struct fault *f)
{
    struct rule_book *book;

    int rc = rule_book_read(path, &book, f);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&t->lock);
    struct key_list *l = copy_without(t->now, SPAN_NONE);
    rule_book_unref(l->book);
    l->book = book;
    install(t, l);
    pthread_mutex_unlock(&t->lock);
    return 0;
}
