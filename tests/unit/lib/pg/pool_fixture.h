// pool_fixture.h: a PostgreSQL cluster, a pool, and calls that wait for their results.
#ifndef TEST_POOL_FIXTURE_H
#define TEST_POOL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pg/pool.h"
#include "support/pg_cluster.h"

struct probe {
    struct pg_call call;
    struct pg_params params;
    int times, status;
    int64_t value;
    size_t len0, len1;
    char sqlstate[6], message[80];
};

extern const struct pg_statement add, divide, nap, wide, nonsense, pid, refusing, insert_twice,
    insert_slow;

extern struct pg_cluster cluster;
extern uv_loop_t loop;
extern struct pg_pool *pool;
extern bool is_up, unprepared;
extern unsigned n_states;
void on_done(struct pg_call *call, int status, const struct pg_reply *reply);
void exec(struct probe *p, const struct pg_statement *s);
void until_done(struct probe *p);
int ask(struct probe *p, const struct pg_statement *s);
int ask_add(int64_t v);
extern unsigned n_servers;
extern const char *conninfo;
void open_pool(unsigned max, unsigned deadline_ms, bool pooled);
int setup(void **state);
void on_closed(void *ctx);
int teardown(void **state);

#endif
