// audit.h: records administrative actions and denied requests, for one loop.
//
//     answer ──► audit_answer() ──► log line, audit_trail ──► store(), once a second ──► table
//
// The answer never waits for the table and never fails because of it. While the database is
// unavailable, records wait in memory; beyond AUDIT_MAX_RECORDS they are lost, which is logged
// and counted, but their log lines are not. A crash loses the records of the last second.
#ifndef QUEEN_AUTH_AUDIT_H
#define QUEEN_AUTH_AUDIT_H

#include <uv.h>

#include "auth/audit_trail.h"
#include "base/metric.h"
#include "http/req.h"
#include "pg/params.h"

struct audit;

struct audit_stats { // any thread may read it
    struct counter stored, lost;
};

struct audit_conf {
    // Starts a call of the function record_audit with these parameters, which it takes, then
    // calls audit_stored() once, later. False: there is no database yet; nothing was taken.
    bool (*store)(void *ctx, struct audit *a, struct pg_params *params);
    void *ctx;
    span server;               // its name; borrowed
    struct audit_stats *stats; // borrowed
};

struct audit *audit_open(uv_loop_t *loop, const struct audit_conf *conf);
// For http_server_conf.audit; ctx is the struct audit.
void audit_answer(void *ctx, struct http_req *req, int status);
// status: 0; QE_PG_DATA: the database will never accept them; other failures are repeated.
void audit_stored(struct audit *a, int status);
// Stores what is left, for at most a second, then calls closed, which may be NULL. No answers
// after this.
void audit_close(struct audit *a, void (*closed)(void *ctx), void *ctx);

#endif
