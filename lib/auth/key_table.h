// key_table.h: the API keys that a process accepts.
//
// One table per process. A reader of the database replaces its contents; the guards of all
// loops take the newest list by reference and are woken when it changes, so a request is
// checked without a lock and without SQL. While the database is unavailable the last list stays
// in use.
//
//     key_table_new ──► key_table_watch (each loop) ──► ... ──► unwatch ──► key_table_free
#ifndef QUEEN_AUTH_KEY_TABLE_H
#define QUEEN_AUTH_KEY_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "auth/api_key.h"
#include "auth/identity_limits.h"
#include "auth/rule_book.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"
#include "http/route.h"

struct key_table;
struct key_list;

struct key_record {
    span id, name;
    uint8_t hash[API_KEY_HASH];
    int64_t until_s; // seconds since 1970; INT64_MAX: for ever
    enum http_access level;
    span rules; // valid; they replace the level; SPAN_NONE: none
    struct limits limits;
    bool has_limits; // otherwise the default ones hold
};

struct key_watcher {
    void (*changed)(void *ctx); // on the thread that changed the list
    void *ctx;
    LIST_ENTRY(key_watcher) link; // used by the table only
};

struct key_table *key_table_new(void);
void key_table_free(struct key_table *t); // t may be NULL; after all watchers are removed
void key_table_watch(struct key_table *t, struct key_watcher *w);
void key_table_unwatch(struct key_table *t, struct key_watcher *w);

// The key of this file is always accepted, as an administrator. Call it again when the file may
// have changed; on failure the key read before stays.
MUST_USE int key_table_read_admin(struct key_table *t, const char *path, struct fault *f);

// The permissions by subject of this file, likewise. They are a part of the list.
MUST_USE int key_table_read_rules(struct key_table *t, const char *path, struct fault *f);

// ---- for requests ----

struct key_list *key_table_current(struct key_table *t); // given: key_list_unref
void key_list_unref(struct key_list *l);                 // l may be NULL
// The record of a key of this id; NULL: none. Borrowed for as long as the list.
const struct key_record *key_list_find(const struct key_list *l, span id);
const struct rule_book *key_list_book(const struct key_list *l); // NULL: none; borrowed
unsigned key_list_count(const struct key_list *l);               // without the key of the file
bool key_list_is_loaded(const struct key_list *l); // the database was read at least once

// ---- for the reader of the database ----

// An answer to a question that was sent before a change of this process is out of date: take
// the epoch before sending and return it with the answer.
unsigned key_table_epoch(struct key_table *t);
void key_table_changed(struct key_table *t); // this process has changed the database
struct key_list *key_list_new(void);
void key_list_add(struct key_list *l, const struct key_record *r); // copied
// The version of the list in the database. False: the list that is in use has none, because it
// was not read yet or was changed here.
bool key_table_version(struct key_table *t, uint8_t version[16]);
void key_list_set_version(struct key_list *l, const uint8_t version[16]);
// Takes l. False: an answer of an older epoch, ignored.
bool key_table_replace(struct key_table *t, struct key_list *l, unsigned epoch);
// Removes one key at once. Other keys stay.
void key_table_drop(struct key_table *t, span id);

#endif
