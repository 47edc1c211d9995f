// The audit log: stores the records of this worker (auth/audit.h), and shows those of all.
//
//      GET /api/v1/audit   newest first
#include "api/api_int.h"
#include "api/sql_endpoint.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"
#include "http/prom_text.h"
#include "pg/params.h"
#include "pg/reply.h"

struct audit_call {
    struct custom_op op;
    struct audit *audit;
};

static void on_audit_recorded(struct custom_op *op, int status, const struct pg_reply *reply);

bool api_store_audit(void *ctx, struct audit *a, struct pg_params *params)
{
    struct api *api = ctx;
    struct audit_call *c = mem_new(struct audit_call);

    c->audit = a;
    c->op = (struct custom_op){
        .done = on_audit_recorded, .statement = &pg_stmt_record_audit, .params = *params};
    broker_custom(api->broker, &c->op);
    return true;
}

static void on_audit_recorded(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct audit_call *c = container_of(op, struct audit_call, op);
    struct audit *audit = c->audit;

    (void)reply;
    if (status != 0)
        log_warn("audit.store_failed", "status=%s detail=\"%s\"", err_name(status),
                 op->op.why.text);
    pg_params_free(&op->params);
    free(c);
    audit_stored(audit, status);
}

static const char *const audit_query[] = {"subject", "address", "operation", "target", "result",
                                          "from",    "to",      "limit",     "before", NULL};
const struct sql_endpoint api_list_audit = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/audit",
              .access = ACCESS_ADMIN,
              .op = "list_audit",
              .query = audit_query,
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_audit,
};

void audit_expose(const struct api_shared *s, struct buf *out)
{
    uint64_t stored = 0, lost = 0;

    for (unsigned i = 0; i < s->n_workers; i++) {
        stored += counter_get(&s->workers[i]->audit_stats.stored);
        lost += counter_get(&s->workers[i]->audit_stats.lost);
    }
    prom_family(out, "queen_audit_records_total", "counter",
                "records of the audit log that were stored, and that could not be stored");
    prom_u64(out, "queen_audit_records_total", "result=\"stored\"", stored);
    prom_u64(out, "queen_audit_records_total", "result=\"lost\"", lost);
}
