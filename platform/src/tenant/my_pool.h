// my_pool.h: a pool of MySQL (MariaDB) connections on one loop, with the calls of pg/pool.h.
//
//       my_pool_exec ──► (queued) ──► a connection ──► call->done
//
// The server prepares all statements, and parameters are sent apart from the text, so no input
// becomes part of SQL.  Nothing blocks: the pool uses the connector's _start/_cont functions
// with uv_poll.  Statements are defined in platform/sql/mysql (my_stmt_tenant_NAME) or created
// at run time; then the text is borrowed until done, like params.
#ifndef QUEEN_TENANT_MY_POOL_H
#define QUEEN_TENANT_MY_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/span.h"

struct my_pool;
struct my_call;
struct my_reply;

struct my_statement {
    const char *name;
    const char *text; // "?" for each parameter
    unsigned index;
};

// Parameters in order; {0} is empty and ready.  Dates, decimals, UUIDs and JSON are passed as
// text in MySQL's format.
enum { MY_MAX_PARAMS = 64 };
struct my_params {
    struct buf data;
    unsigned n;
    struct {
        enum { MY_NULL, MY_TEXT, MY_INT, MY_FLOAT } type;
        size_t at, len; // text, in data
        int64_t i;
        double f;
    } param[MY_MAX_PARAMS];
};
void my_params_reset(struct my_params *p); // keeps the memory
void my_params_free(struct my_params *p);
void my_param_null(struct my_params *p);
void my_param_text(struct my_params *p, span v); // copied
void my_param_i64(struct my_params *p, int64_t v);
void my_param_f64(struct my_params *p, double v);
void my_param_bool(struct my_params *p, bool v);

// Called exactly once, never from inside my_pool_exec().  status is 0 or a code of err.h with
// the meaning given in pg/pool.h.  reply is borrowed for the call and never NULL.
typedef void (*my_done_cb)(struct my_call *call, int status, const struct my_reply *reply);

// In the caller's memory until done; params and statement are borrowed until then.
struct my_call {
    const struct my_statement *statement;
    const struct my_params *params; // NULL: none
    my_done_cb done;
    void *owner;
    unsigned deadline_ms;          // 0: the pool's.  Closes the connection: QE_PG_GONE
    unsigned statement_timeout_ms; // 0: the session's.  The server cancels it: QE_PG_RETRY

    STAILQ_ENTRY(my_call) link; // private from here on
    uint64_t queued_us, sent_us;
    bool retried; // an idle connection was found closed before the call was sent
    int refusal;
};

// The address of a database.  {0} is empty; my_place_deinit() frees the texts.
struct my_place {
    char *host, *user, *password, *db;
    char *socket; // Unix socket instead of host and port; or NULL
    unsigned port;
    bool tls;           // only with TLS, ...
    bool tls_unchecked; // ... whose certificate is not verified
    const char *tls_ca; // file of certificates to trust; NULL: the library's; borrowed
    bool any_auth;      // allow authentication methods that reveal the password
};
// mysql://user:password@host:port/db?tls=true, or ?socket=/path without a host. tls=true
// verifies certificate and host name, tls=skip-verify only encrypts.
MUST_USE int my_place_parse(const char *url, struct my_place *out, struct fault *f);
// The address without its password.  Given: free().
char *my_place_url(const struct my_place *p);
void my_place_deinit(struct my_place *p);

struct my_pool_conf {
    const struct my_place *place; // copied
    unsigned max_conns;           // opened on demand
    unsigned connect_timeout_ms;
    unsigned deadline_ms;          // a call without a reply for this long closes the connection
    unsigned statement_timeout_ms; // the server cancels the statement (MariaDB); 0: never
    unsigned idle_close_ms;        // a connection idle for this long is closed
    // Over TCP: drop the connection when a call receives more; 0: never.
    size_t max_result_bytes;
};
struct my_pool *my_pool_open(uv_loop_t *loop, const struct my_pool_conf *conf);
void my_pool_exec(struct my_pool *p, struct my_call *call); // failures are reported to done
// Fails queued calls with QE_STOPPING, lets sent calls finish, then closes and frees the pool.
void my_pool_close(struct my_pool *p, void (*closed)(void *ctx), void *ctx);
uint64_t
my_pool_last_reply_us(const struct my_pool *p);     // time of the last reply of the database
const char *my_pool_error(const struct my_pool *p); // of the last failed connection attempt; ""
bool my_pool_is_up(const struct my_pool *p);        // the last connection attempt succeeded
unsigned my_pool_conns(const struct my_pool *p);    // open connections

// ---- replies: the rows of the last result that has rows; all values are text ----
unsigned my_reply_rows(const struct my_reply *r);
unsigned my_reply_cols(const struct my_reply *r);
bool my_reply_is_null(const struct my_reply *r, unsigned row, unsigned col);
span my_reply_text(const struct my_reply *r, unsigned row, unsigned col); // SPAN_NONE for NULL
int64_t my_reply_i64(const struct my_reply *r, unsigned row, unsigned col); // 0 for NULL
double my_reply_f64(const struct my_reply *r, unsigned row, unsigned col);
uint64_t
my_reply_affected(const struct my_reply *r); // rows changed by a statement without result rows
unsigned my_reply_errno(const struct my_reply *r);       // the server's error number; 0: none
const char *my_reply_sqlstate(const struct my_reply *r); // "" when none
const char *my_reply_message(const struct my_reply *r);  // "" when none

#endif
