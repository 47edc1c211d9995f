// API keys: broker 0 reads them from the database for the whole process.
//
// Every second it compares the version of the table and reads the keys if it differs, and at
// once when another server reports a change. While the database is away the last list stays in
// use: nobody can revoke a key then, and pushes must go on into the file buffer.
#include "broker/broker_int.h"

#include "auth/key_table.h"
#include "auth/rules.h"
#include "base/clock.h"
#include "base/log.h"
#include "db/sql.gen.h"

// Without keys and without authentication nothing waits for a change.
enum { KEYS_US = 1000 * 1000, IDLE_US = 10 * 1000 * 1000, FIRST_US = 50 * 1000 };

static void on_keys_due(struct due *d);
static void on_keys(struct pg_call *pg, int status, const struct pg_reply *reply);

void house_use_keys(struct house *h, struct key_table *keys, bool is_protected)
{
    h->keys = keys;
    h->keys_protected = is_protected;
}

void keys_start(struct broker *b)
{
    if (b->house->keys && !b->closing)
        due_set(&b->due, &b->keys_due, clock_mono_us(), on_keys_due);
    broker_wake(b);
}

static void keys_again(struct broker *b)
{
    uint64_t wait_us = !b->keys_known                                  ? FIRST_US
                       : b->house->keys_protected || b->keys_count > 0 ? KEYS_US
                                                                       : IDLE_US;

    due_set(&b->due, &b->keys_due, clock_mono_us() + wait_us, on_keys_due);
}

static void on_keys_due(struct due *d)
{
    struct broker *b = container_of(d, struct broker, keys_due);

    if (b->closing)
        return;
    if (!broker_is_up(b) || b->keys_asking) {
        keys_again(b);
        return;
    }
    struct call *c = call_new(b, &pg_stmt_read_keys, NULL);
    b->keys_asking = true;
    b->keys_epoch = key_table_epoch(b->house->keys);
    keys_put_version(b->house->keys, &c->params);
    call_send(c, on_keys);
}

static void on_keys(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;

    b->keys_asking = false;
    if (status == 0)
        status = keys_read(b->house->keys, reply, b->keys_epoch);
    if (status == QE_PG_SHAPE)
        (void)call_unexpected(c, "API keys without a version");
    if (status == 0) {
        struct key_list *l = key_table_current(b->house->keys);
        b->keys_known = true;
        b->keys_count = key_list_count(l);
        key_list_unref(l);
    } else {
        log_debug("keys.read_failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
    }
    call_free(c);
    keys_again(b);
    broker_wake(b);
}

void keys_put_version(struct key_table *t, struct pg_params *params)
{
    uint8_t version[16];

    if (key_table_version(t, version))
        pg_param_uuid(params, version);
    else
        pg_param_null(params, PG_UUID);
}

static bool read_role(span text, enum http_access *level)
{
    static const struct {
        span name;
        enum http_access level;
    } roles[] = {{{"read-only", 9}, ACCESS_READ_ONLY},
                 {{"read-write", 10}, ACCESS_READ_WRITE},
                 {{"admin", 5}, ACCESS_ADMIN}};

    for (unsigned i = 0; i < countof(roles); i++) {
        if (!span_eq(text, roles[i].name))
            continue;
        *level = roles[i].level;
        return true;
    }
    return false;
}

static bool is_valid(span rules)
{
    struct access_rules *parsed;
    struct fault f;

    if (rules.ptr && access_rules_parse(rules, &parsed, &f) != 0)
        return false;
    if (rules.ptr)
        access_rules_unref(parsed);
    return true;
}

int keys_read(struct key_table *t, const struct pg_reply *reply, unsigned epoch)
{
    uint8_t known[16];
    unsigned rows = pg_reply_rows(reply);

    const uint8_t *version = rows > 0 ? pg_reply_uuid(reply, 0, READ_KEYS_COL_VERSION) : NULL;
    if (!version) // its table is empty
        return QE_PG_SHAPE;
    if (rows == 1 && key_table_version(t, known) && memcmp(known, version, 16) == 0)
        return 0;
    struct key_list *l = key_list_new();
    for (unsigned row = 1; row < rows; row++) {
        struct key_record r = {.id = pg_reply_bytes(reply, row, READ_KEYS_COL_ID),
                               .name = pg_reply_bytes(reply, row, READ_KEYS_COL_NAME),
                               .until_s = INT64_MAX};
        span hash = pg_reply_bytes(reply, row, READ_KEYS_COL_HASH);
        r.rules = pg_reply_bytes(reply, row, READ_KEYS_COL_RULES);
        if (r.id.len != API_KEY_ID || hash.len != sizeof r.hash || !is_valid(r.rules) ||
            (!r.rules.ptr &&
             !read_role(pg_reply_bytes(reply, row, READ_KEYS_COL_ROLE), &r.level))) {
            log_warn("keys.invalid", "id=\"" SPAN_FMT "\"", SPAN_ARG(r.id));
            continue;
        }
        span limits = pg_reply_bytes(reply, row, READ_KEYS_COL_LIMITS);
        r.has_limits = limits.ptr != NULL;
        struct fault f;
        if (r.has_limits && limits_parse(limits, &r.limits, &f) != 0) {
            log_warn("keys.invalid", "id=\"" SPAN_FMT "\" why=\"%s\"", SPAN_ARG(r.id), f.text);
            continue;
        }
        memcpy(r.hash, hash.ptr, sizeof r.hash);
        if (!pg_reply_is_null(reply, row, READ_KEYS_COL_EXPIRES_S))
            r.until_s = pg_reply_i64(reply, row, READ_KEYS_COL_EXPIRES_S);
        key_list_add(l, &r);
    }
    key_list_set_version(l, version);
    key_table_replace(t, l, epoch);
    return 0;
}

void broker_keys_changed(struct broker *b)
{
    struct house *h = b->house;

    if (h->notify)
        h->notify(h->notify_ctx, HOUSE_KEYS, SPAN_NONE, SPAN_NONE);
}
