// /api/v1/consumer-groups/:group/queues/:queue/owners...: which process owns which partition.
// The functions are in broker/sql/owners; docs/guide/processor.md describes their use.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

#define OWNERS "/api/v1/consumer-groups/:group/queues/:queue/owners"

static const char *const claim_members[] = {"owner", "partitions",        "expirySeconds",
                                            "steal", "manualCheckpoints", NULL};

static const char *const renew_members[] = {"owner", "partitions", "expirySeconds", NULL};

static const char *const owned_members[] = {"owner", "partitions", NULL};

static const char *const processors_params[] = {"queue", "consumerGroup", NULL};
const struct sql_endpoint api_list_processors = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/processors",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_LIST,
              .need = MAY_READ,
              .op = "list_processors",
              .handle = sql_endpoint_handle,
              .query = processors_params},
    .statement = &pg_stmt_list_processors,
};

const struct sql_endpoint api_list_owners = {
    .route = {.verb = HTTP_GET,
              .path = OWNERS,
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PATH,
              .need = MAY_READ,
              .op = "list_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_owners,
};

static const char *const changes_params[] = {"from", "to", "limit", "bucketSeconds", NULL};

const struct sql_endpoint api_list_owner_changes = {
    .route = {.verb = HTTP_GET,
              .path = OWNERS "/changes",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PATH,
              .need = MAY_READ,
              .op = "list_owner_changes",
              .handle = sql_endpoint_handle,
              .query = changes_params},
    .statement = &pg_stmt_list_owner_changes,
};

const struct sql_endpoint api_claim_owners = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/claim",
              .unaudited = true,
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PATH,
              .need = MAY_POP,
              .op = "claim_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_claim_owners,
    .body = ENDPOINT_BODY,
    .changes_queue = true,
    .members = claim_members,
};

const struct sql_endpoint api_renew_owners = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/renew",
              .unaudited = true,
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PATH,
              .need = MAY_POP,
              .op = "renew_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_renew_owners,
    .body = ENDPOINT_BODY,
    .members = renew_members,
};

const struct sql_endpoint api_release_owners = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/release",
              .unaudited = true,
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PATH,
              .need = MAY_POP,
              .op = "release_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_release_owners,
    .body = ENDPOINT_BODY,
    .changes_queue = true,
    .members = owned_members,
};

const struct sql_endpoint api_ask_owners = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/ask",
              .unaudited = true,
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PATH,
              .need = MAY_POP,
              .op = "ask_owners",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_ask_owners,
    .body = ENDPOINT_BODY,
    .members = owned_members,
};

const struct sql_endpoint api_save_checkpoints = {
    .route = {.verb = HTTP_POST,
              .path = OWNERS "/checkpoint",
              .unaudited = true,
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PATH,
              .need = MAY_POP,
              .op = "save_checkpoints",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_save_checkpoints,
    .body = ENDPOINT_BODY,
    .members = owned_members,
};
