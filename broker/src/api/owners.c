// /api/v1/consumer-groups/:group/queues/:queue/owners...: who processes which partition.  See
// broker/sql/procs for what each of them answers, docs/guide/processor.md for how they are
// used.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

#define OWNERS "/api/v1/consumer-groups/:group/queues/:queue/owners"

const struct sql_endpoint api_list_owners = {
    .route = {.verb = HTTP_GET,
              .path = OWNERS,
              .access = ACCESS_READ_ONLY,
              .op = "list_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_owners,
};

const struct sql_endpoint api_claim_owners = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/claim",
              .access = ACCESS_READ_WRITE,
              .op = "claim_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_claim_owners,
    .body = ENDPOINT_BODY,
    .changes_queue = true,
};

const struct sql_endpoint api_renew_owners = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/renew",
              .access = ACCESS_READ_WRITE,
              .op = "renew_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_renew_owners,
    .body = ENDPOINT_BODY,
};

const struct sql_endpoint api_release_owners = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/release",
              .access = ACCESS_READ_WRITE,
              .op = "release_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_release_owners,
    .body = ENDPOINT_BODY,
    .changes_queue = true,
};

const struct sql_endpoint api_ask_owners = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/ask",
              .access = ACCESS_READ_WRITE,
              .op = "ask_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_ask_owners,
    .body = ENDPOINT_BODY,
};

const struct sql_endpoint api_save_checkpoints = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/checkpoint",
              .access = ACCESS_READ_WRITE,
              .op = "save_checkpoints",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_save_checkpoints,
    .body = ENDPOINT_BODY,
};
