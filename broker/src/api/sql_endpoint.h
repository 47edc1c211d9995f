// sql_endpoint.h: endpoints that are a SQL function.
//
// Administrative endpoints are rare and look at the database, so they are written in SQL, one
// function each, and need no C of their own beyond a descriptor:
//
//      path, query and body ──► {"queue":"a","limit":"5","body":{...}} ──► function ──► rows
//
// The statement takes one parameter, that object as text, and returns rows of
//
//      status int4, piece text, payload bytea, sealed boolean
//
// The answer is the pieces in order, each followed by its payload where there is one: payloads
// leave as they were sent, never as jsonb writes them.  A sealed payload is encrypted and is
// opened on the way out.  The status is that of the first row.
//
// For long lists a statement returns further columns,
//
//      shape text, and one column per value
//
// where shape (see json_rows.h) is given once, in a row before the list.  A row whose first
// value is not null is put by the shape, behind its piece; one without a piece gets a comma
// between it and an entry before it.
//
// Long work goes in steps, each a transaction of its own: a first row of status 0 requests
// another call with its piece as the object.  A payload in that row wants to be sealed: it is
// added to the object as "sealed", or null if there is no key; false: then it must not be
// stored in clear, unless the queue allows it.
//
// Parameters of path and query come as JSON strings, only those that were sent (a query
// parameter that is empty counts as not sent); a path parameter wins over a query parameter of
// the same name.  An error of SQLSTATE class QN becomes 400 with its text.
#ifndef QUEEN_API_SQL_ENDPOINT_H
#define QUEEN_API_SQL_ENDPOINT_H

#include <stdbool.h>

#include "http/route.h"

struct pg_statement;

enum sql_endpoint_body {
    // One that comes is ignored by endpoints of the contract that destroy nothing, and by GET.
    // With others it must be empty like that of ENDPOINT_MAY_BODY: it was meant for something.
    ENDPOINT_NO_BODY,
    ENDPOINT_MAY_BODY, // missing, empty, [] and null count as {}
    ENDPOINT_BODY,     // must be a JSON object
};

// The group for rules with a condition on groups, where the path names none.
enum sql_endpoint_group {
    ENDPOINT_NO_GROUP,            // it concerns no group
    ENDPOINT_ALL_GROUPS,          // what it does concerns every group
    ENDPOINT_GROUP_OR_QUEUE_MODE, // the member consumerGroup; without it queue mode
    ENDPOINT_GROUP_OR_ALL,        // the member consumerGroup; without it every group
};

struct sql_endpoint {
    struct http_route route; // .handle = sql_endpoint_handle
    const struct pg_statement *statement;
    enum sql_endpoint_body body;
    const char *const *members; // of the body, ends with NULL; NULL: none
    enum sql_endpoint_group group;
    // On success the cached state of the queue in the path is out of date; without one, of
    // queues that the statement has written into the change feed.
    bool changes_queue;
    bool changes_times; // on success something may be due earlier than the broker expects
};

void sql_endpoint_handle(struct http_req *req);

// For others that call such statements: whether the rows request another step; params are those
// of the next call then.
struct broker;
struct pg_params;
struct pg_reply;
bool sql_endpoint_next_step(struct broker *b, const struct pg_reply *reply,
                            struct pg_params *params);

extern const struct sql_endpoint api_delete_queue; // resources.c
// streams.c
extern const struct sql_endpoint api_list_streams, api_stream_register, api_stream_state;
extern const struct sql_endpoint api_retention; // retention.c
extern const struct sql_endpoint api_list_queues, api_get_queue, api_list_namespaces,
    api_list_tasks, api_get_overview, api_list_partitions;
// status_queues.c
extern const struct sql_endpoint api_status_queues, api_status_queue, api_status_queue_messages,
    api_map_partitions, api_status_analytics, api_refresh_stats;
// messages.c
extern const struct sql_endpoint api_list_messages, api_get_message, api_list_dlq,
    api_dlq_groups;
// traces.c
extern const struct sql_endpoint api_add_trace, api_trace_names, api_traces_by_name,
    api_traces_of_message;
// groups_read.c
extern const struct sql_endpoint api_list_groups, api_list_lagging, api_get_group,
    api_group_partitions;
// analytics.c
extern const struct sql_endpoint api_status, api_system_metrics, api_worker_metrics,
    api_queue_lag, api_queue_ops, api_parked_replicas, api_postgres_stats;
// actions.c
extern const struct sql_endpoint api_delete_message, api_retry_message, api_move_to_dlq,
    api_clear_queue;
// retries.c
extern const struct sql_endpoint api_timeline, api_find_messages, api_redrive;
// owners.c
extern const struct sql_endpoint api_list_processors, api_list_owner_changes, api_ask_owners,
    api_list_owners, api_claim_owners, api_renew_owners, api_release_owners,
    api_save_checkpoints;
// groups.c
extern const struct sql_endpoint api_delete_group, api_delete_group_on_queue,
    api_update_subscription, api_seek_group, api_preview_seek, api_seek_partition;

// keys.c
extern const struct sql_endpoint api_list_keys;
// audit.c
extern const struct sql_endpoint api_list_audit;
// scheduled.c
extern const struct sql_endpoint api_list_scheduled, api_count_scheduled, api_get_scheduled,
    api_cancel_scheduled_one, api_cancel_scheduled, api_reschedule;
// schedules.c
extern const struct sql_endpoint api_list_schedules, api_create_schedule, api_get_schedule,
    api_change_schedule, api_delete_schedule, api_pause_schedule, api_resume_schedule,
    api_run_schedule_now;

#endif
