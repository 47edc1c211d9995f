// audit_trail.c: see audit_trail.h.
#include "auth/audit_trail.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/mem.h"
#include "base/str.h"

// Refused requests of one sender, route and status.
struct window {
    bool open;
    uint64_t since_us;
    uint64_t more; // after the first
    struct audit_record *first;
    const void *key;
};

struct audit_trail {
    struct audit_records records;
    unsigned n_records;
    uint64_t lost;
    struct window windows[AUDIT_WINDOWS];
    unsigned n_open;
    uint64_t others; // beyond the limits of windows
    uint64_t others_us;
    int others_status; // of the first
};

struct audit_trail *audit_trail_new(void)
{
    struct audit_trail *t = mem_new(struct audit_trail);

    STAILQ_INIT(&t->records);
    return t;
}

static void record_free(struct audit_record *r)
{
    for (unsigned i = 0; i < AUDIT_FIELDS; i++)
        free(r->text[i]);
    free(r->detail);
    free(r);
}

void audit_records_free(struct audit_records *list)
{
    struct audit_record *r;

    while ((r = STAILQ_FIRST(list))) {
        STAILQ_REMOVE_HEAD(list, link);
        record_free(r);
    }
}

void audit_trail_free(struct audit_trail *t)
{
    if (!t)
        return;
    audit_records_free(&t->records);
    for (unsigned i = 0; i < AUDIT_WINDOWS; i++)
        if (t->windows[i].open)
            record_free(t->windows[i].first);
    free(t);
}

static char *copy_clean(span s)
{
    char out[AUDIT_TEXT + 1];

    str_clean_utf8(out, sizeof out, s);
    return mem_strndup(out, strlen(out));
}

static struct audit_record *record_new(const struct audit_entry *e, int64_t wall_us)
{
    struct audit_record *r = mem_new(struct audit_record);
    bool has_detail = e->detail.ptr && e->detail.len <= AUDIT_DETAIL;

    id_uuid7(r->id);
    r->at_us = wall_us;
    r->count = 1;
    r->status = e->status;
    memcpy(r->ip, e->ip, sizeof r->ip);
    for (unsigned i = 0; i < AUDIT_FIELDS; i++)
        r->text[i] = copy_clean(e->text[i]);
    r->detail = mem_strndup(has_detail ? e->detail.ptr : "", has_detail ? e->detail.len : 0);
    return r;
}

static struct audit_record *record_copy(const struct audit_record *from, int64_t wall_us,
                                        uint64_t count)
{
    struct audit_record *r = mem_new(struct audit_record);

    *r = *from;
    id_uuid7(r->id);
    r->at_us = wall_us;
    r->count = count;
    for (unsigned i = 0; i < AUDIT_FIELDS; i++)
        r->text[i] = mem_strndup(from->text[i], strlen(from->text[i]));
    r->detail = mem_strndup(from->detail, strlen(from->detail));
    return r;
}

static void record_put(struct audit_trail *t, struct audit_record *r)
{
    if (t->n_records >= AUDIT_MAX_RECORDS) {
        t->lost++;
        record_free(r);
        return;
    }
    STAILQ_INSERT_TAIL(&t->records, r, link);
    t->n_records++;
}

// Address and subject. An IPv6 sender can choose any address of its /64 network.
static bool is_same_sender(const struct audit_record *r, const struct audit_entry *e)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool four = memcmp(r->ip, mapped, sizeof mapped) == 0;
    char clean[AUDIT_TEXT + 1];

    if (memcmp(r->ip, e->ip, four ? 16 : 8) != 0)
        return false;
    str_clean_utf8(clean, sizeof clean, e->text[AUDIT_SUBJECT]);
    return strcmp(r->text[AUDIT_SUBJECT], clean) == 0;
}

// NULL: the limits are reached, or the request was counted.
static struct window *window_find(struct audit_trail *t, const struct audit_entry *e,
                                  uint64_t now_us)
{
    struct window *spare = NULL;
    unsigned n_same = 0;

    for (unsigned i = 0; i < AUDIT_WINDOWS; i++) {
        struct window *w = &t->windows[i];
        if (!w->open) {
            spare = spare ? spare : w;
            continue;
        }
        if (!is_same_sender(w->first, e))
            continue;
        n_same++;
        if (w->key == e->key && w->first->status == e->status) {
            w->more++;
            return NULL;
        }
    }
    if (spare && n_same < AUDIT_WINDOWS_PER_SENDER)
        return spare;
    if (t->others++ == 0) {
        t->others_us = now_us;
        t->others_status = e->status;
    }
    return NULL;
}

bool audit_trail_add(struct audit_trail *t, const struct audit_entry *e, uint64_t now_us,
                     int64_t wall_us)
{
    if (e->status >= 400) {
        struct window *w = window_find(t, e, now_us);
        if (!w)
            return false;
        *w = (struct window){.open = true, .since_us = now_us, .key = e->key};
        w->first = record_new(e, wall_us);
        t->n_open++;
    }
    record_put(t, record_new(e, wall_us));
    return true;
}

static void put_counted(struct audit_trail *t, struct audit_record *r,
                        void (*report)(const struct audit_record *r))
{
    if (report)
        report(r);
    record_put(t, r);
}

static void sweep_others(struct audit_trail *t, uint64_t now_us, int64_t wall_us, bool all,
                         void (*report)(const struct audit_record *r))
{
    struct audit_entry e = {.status = t->others_status, .text[AUDIT_OP] = SPAN("several")};

    if (t->others == 0 || (!all && now_us - t->others_us < AUDIT_WINDOW_US))
        return;
    struct audit_record *r = record_new(&e, wall_us);
    r->count = t->others;
    t->others = 0;
    put_counted(t, r, report);
}

void audit_trail_sweep(struct audit_trail *t, uint64_t now_us, int64_t wall_us, bool all,
                       void (*report)(const struct audit_record *r))
{
    for (unsigned i = 0; i < AUDIT_WINDOWS && t->n_open > 0; i++) {
        struct window *w = &t->windows[i];
        if (!w->open || (!all && now_us - w->since_us < AUDIT_WINDOW_US))
            continue;
        if (w->more > 0)
            put_counted(t, record_copy(w->first, wall_us, w->more), report);
        record_free(w->first);
        w->open = false;
        t->n_open--;
    }
    sweep_others(t, now_us, wall_us, all, report);
}

bool audit_trail_is_idle(const struct audit_trail *t)
{
    return t->n_records == 0 && t->n_open == 0 && t->others == 0;
}

unsigned audit_trail_take(struct audit_trail *t, struct audit_records *to, unsigned n)
{
    struct audit_record *r;
    unsigned taken = 0;

    while (taken < n && (r = STAILQ_FIRST(&t->records))) {
        STAILQ_REMOVE_HEAD(&t->records, link);
        STAILQ_INSERT_TAIL(to, r, link);
        t->n_records--;
        taken++;
    }
    return taken;
}

void audit_trail_return(struct audit_trail *t, struct audit_records *from)
{
    struct audit_record *r;

    STAILQ_FOREACH (r, from, link)
        t->n_records++;
    STAILQ_CONCAT(from, &t->records);
    STAILQ_CONCAT(&t->records, from);
}

uint64_t audit_trail_lost(const struct audit_trail *t) { return t->lost; }

void audit_format_ip(const uint8_t ip[16], char out[AUDIT_IP_TEXT])
{
    struct in6_addr six;

    memcpy(six.s6_addr, ip, 16);
    out[0] = '\0';
    if (IN6_IS_ADDR_UNSPECIFIED(&six))
        return;
    if (IN6_IS_ADDR_V4MAPPED(&six))
        inet_ntop(AF_INET, six.s6_addr + 12, out, AUDIT_IP_TEXT);
    else
        inet_ntop(AF_INET6, &six, out, AUDIT_IP_TEXT);
}
