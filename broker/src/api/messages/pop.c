// GET /api/v1/pop...: take messages, optionally waiting for them.
//
//      /api/v1/pop/queue/:queue                        any partition of a queue
//      /api/v1/pop/queue/:queue/partition/:partition   that one
//      /api/v1/pop?namespace=&task=                    any partition of the queues so labelled
//      /api/v1/pop?queue=&partition=                   the first two in another form
//
// A pop does not answer 5xx while the database is away: consumers would give up.  One that does
// not wait and comes before the schema is in place is not answered with 204, because nobody has
// looked for messages: it waits for the end of the start, and gets 503 if it takes too long.
#include "api/api_int.h"
#include "api/messages/pop_int.h"
#include "api/permission.h"
#include "api/tracing.h"
#include "auth/access.h"

#define EVENT_TYPE  "application/cloudevents+json"
#define EVENTS_TYPE "application/cloudevents-batch+json"

enum { MAX_BATCH = 1000000, MAX_TIMEOUT_MS = 86400000, EARLY_WAIT_MS = 5000 };

static void pop_labels(struct http_req *req);
static void pop_queue(struct http_req *req);
static void pop_partition(struct http_req *req);
static void pop_start(struct pop *p);
static bool read_names(struct pop *p);
static bool read_form(struct pop *p);
static void on_gone(struct http_req *req, void *ctx);
static void on_api_popped(struct pop_op *op, int status);
static void api_pop_finish(struct pop *p, int status);
static void on_set_aside(struct pop *p);
static void api_pop_answer(struct pop *p);
static void on_api_pop_looked(struct pop *p, bool is_owner);
static void api_pop_give_back(struct pop *p);

static struct pop *pop_new(struct http_req *req)
{
    struct pop *p = arena_new(http_req_arena(req), struct pop);
    p->req = req;
    return p;
}

// The guard knows only queues in paths: this one is checked here. Pops without a queue are
// checked by their selector.
static void pop_labels(struct http_req *req)
{
    struct pop *p = pop_new(req);
    span group = http_req_query(req, SPAN("consumerGroup"));

    p->op.queue = http_req_query(req, SPAN("queue"));
    if (p->op.queue.ptr) {
        if (!permission_check(req, MAY_POP, p->op.queue, group.ptr ? group : API_QUEUE_MODE))
            return;
        p->op.partition = http_req_query(req, SPAN("partition"));
    } else {
        p->op.namespace_ = http_req_query(req, SPAN("namespace"));
        p->op.task = http_req_query(req, SPAN("task"));
        if (!p->op.namespace_.ptr && !p->op.task.ptr) {
            http_reply_errf(req, QE_BAD_PARAM, "a queue, a namespace or a task is needed");
            return;
        }
    }
    pop_start(p);
}

static void pop_queue(struct http_req *req)
{
    struct pop *p = pop_new(req);

    if (http_req_param(req, 0, &p->op.queue))
        pop_start(p);
    else
        http_reply_errf(req, QE_BAD_PARAM, "the queue in the path is malformed");
}

static void pop_partition(struct http_req *req)
{
    struct pop *p = pop_new(req);

    if (http_req_param(req, 0, &p->op.queue) && http_req_param(req, 1, &p->op.partition))
        pop_start(p);
    else
        http_reply_errf(req, QE_BAD_PARAM, "the queue or partition in the path is malformed");
}

static uint32_t clamped(int64_t v, int64_t min, int64_t max)
{
    return (uint32_t)(v < min ? min : v > max ? max : v);
}

static void pop_start(struct pop *p)
{
    struct http_req *req = p->req;
    struct api *api = http_req_app(req);
    struct pop_op *op = &p->op;

    if (http_req_verb(req) == HTTP_HEAD) { // would take messages without delivering them
        http_reply_header(req, SPAN("Allow"), SPAN("GET, OPTIONS"));
        http_reply_err(req, QE_METHOD);
        return;
    }
    op->batch =
        clamped(http_req_query_int(req, SPAN("batch"), api->default_batch), 1, MAX_BATCH);
    op->partitions = clamped(http_req_query_int(req, SPAN("partitions"), 1), 1, MAX_BATCH);
    if (op->partition.ptr)
        op->partitions = 1;
    op->timeout_ms = clamped(http_req_query_int(req, SPAN("timeout"), api->default_timeout_ms),
                             0, MAX_TIMEOUT_MS);
    op->wait = http_req_query_bool(req, SPAN("wait"), false);
    if (!op->wait && !atomic_load(&api->shared->ready)) {
        p->is_early = true;
        op->wait = true;
        if (op->timeout_ms > EARLY_WAIT_MS)
            op->timeout_ms = EARLY_WAIT_MS;
    }
    op->auto_ack = http_req_query_bool(req, SPAN("autoAck"), false);
    op->sub_from = http_req_query(req, SPAN("subscriptionFrom"));
    op->sub_mode = http_req_query(req, SPAN("subscriptionMode"));
    if (!op->sub_mode.ptr)
        op->sub_mode = api->default_subscription_mode;
    op->group = http_req_query(req, SPAN("consumerGroup"));
    if (!op->group.ptr)
        op->group = API_QUEUE_MODE;
    if (!op->queue.ptr)
        op->rules = access_rules_of(req); // the request keeps them until its answer
    if (!read_names(p) || !read_form(p) || !pop_fence_read(p))
        return;

    p->links_wanted = api->traces != NULL;
    op->render = p->as == POP_PLAIN ? pop_render : pop_render_events;
    op->done = on_api_popped;
    http_req_on_gone(req, on_gone, p);
    broker_pop(api->broker, op);
}

// Texts of the query are whatever the client sent; these will be looked up in the database.
static bool read_names(struct pop *p)
{
    const struct pop_op *op = &p->op;
    const struct {
        const char *name;
        span text;
    } names[] = {{"queue", op->queue},
                 {"partition", op->partition},
                 {"namespace", op->namespace_},
                 {"task", op->task},
                 {"consumerGroup", op->group},
                 {"subscriptionMode", op->sub_mode},
                 {"subscriptionFrom", op->sub_from}};

    for (unsigned i = 0; i < countof(names); i++) {
        if (!api_is_name(names[i].text)) {
            http_reply_errf(p->req, QE_BAD_PARAM,
                            "%s must be at most %d characters of UTF-8 without NUL",
                            names[i].name, API_NAME_CHARS);
            return false;
        }
    }
    return true;
}

// CloudEvents are for those who name them in Accept.
static bool read_form(struct pop *p)
{
    if (!http_req_has(p->req, RARE_EVENT_OUT))
        return true;
    span accept = http_req_header(p->req, SPAN("accept"));
    if (memmem(accept.ptr, accept.len, EVENTS_TYPE, sizeof EVENTS_TYPE - 1)) {
        p->as = POP_EVENTS;
    } else if (memmem(accept.ptr, accept.len, EVENT_TYPE, sizeof EVENT_TYPE - 1)) {
        p->as = POP_EVENT;
        if (p->op.batch > 1) {
            http_reply_errf(p->req, QE_NOT_ACCEPTABLE,
                            "more than one message needs Accept: " EVENTS_TYPE);
            return false;
        }
    }
    return true;
}

static void on_gone(struct http_req *req, void *ctx)
{
    struct pop *p = ctx;
    struct api *api = http_req_app(req);

    broker_pop_cancel(api->broker, &p->op);
}

// Errors of the database, not of the request.
static bool is_outage(int status)
{
    switch (status) {
    case QE_PG_SHAPE:
    case QE_PG_GONE:
    case QE_PG_AWAY:
    case QE_PG_RETRY:
    case QE_PG_FAILED:
    case QE_PG_FULL:
    case QE_PG_READ_ONLY:
        return true;
    default:
        return false;
    }
}

static bool can_answer(const struct pop *p)
{
    const struct pop_op *op = &p->op;

    return op->n_messages > 0 && !op->out.failed &&
           !(p->has_lease ? http_req_has_hung_up(p->req) : http_req_is_gone(p->req));
}

static void on_api_popped(struct pop_op *op, int status)
{
    struct pop *p = container_of(op, struct pop, op);

    // The lease of a client that has gone is given back whole.
    if (status == 0 && p->aside && !(p->has_lease && http_req_has_hung_up(p->req)))
        pop_aside_send(p, on_set_aside);
    else
        api_pop_finish(p, status);
}

static void on_set_aside(struct pop *p) { api_pop_finish(p, 0); }

static void api_pop_finish(struct pop *p, int status)
{
    struct pop_op *op = &p->op;

    pop_aside_free(p);
    if (p->links_wanted) {
        tracing_take_links(p->req, &p->links); // may begin the span
        tracing_note(p->req, op->queue, op->partition, op->group, op->n_messages);
    }
    if (status == 0 && can_answer(p)) {
        if (p->fence)
            pop_fence_look(p, on_api_pop_looked);
        else
            api_pop_answer(p);
        return;
    }
    if (p->has_lease && status == 0)
        api_pop_give_back(p);
    int rc = op->out.failed ? QE_NO_MEMORY : 0;
    buf_free(&op->out);
    const struct api *api = http_req_app(p->req);
    bool starting =
        p->is_early && !atomic_load(&api->shared->ready) && (status == 0 || is_outage(status));
    if (starting)
        status = QE_PG_AWAY;

    if (http_req_is_gone(p->req) || (is_outage(status) && !op->op.unknown && !starting) ||
        (status == 0 && rc == 0))
        http_reply_empty(p->req, 204);
    else
        api_reply_failed(p->req, status != 0 ? status : rc, &op->op.why);
}

static void api_pop_answer(struct pop *p)
{
    if (p->as == POP_PLAIN)
        http_reply_json(p->req, 200, &p->op.out);
    else
        http_reply_text(p->req, 200, p->as == POP_EVENT ? SPAN(EVENT_TYPE) : SPAN(EVENTS_TYPE),
                        &p->op.out);
}

static void on_api_pop_looked(struct pop *p, bool is_owner)
{
    if (is_owner && can_answer(p)) {
        api_pop_answer(p);
        return;
    }
    api_pop_give_back(p);
    buf_free(&p->op.out);
    if (is_owner)
        http_reply_empty(p->req, 204);
    else
        http_reply_errf(p->req, QE_CONFLICT, "the partition has another owner by now");
}

static void api_pop_give_back(struct pop *p)
{
    struct api *api = http_req_app(p->req);

    broker_give_back(api->broker, p->lease);
}

// Clients append namespace and task to all forms; where they mean nothing they are ignored.
#define POP_PARAMS                                                              \
    "batch", "wait", "timeout", "consumerGroup", "autoAck", "subscriptionMode", \
        "subscriptionFrom"
static const char *const pop_params[] = {POP_PARAMS,  "partitions", "queue",
                                         "partition", "namespace",  "task",
                                         "owner",     "epoch",      NULL};
static const char *const pop_queue_params[] = {POP_PARAMS, "partitions", NULL};
static const char *const pop_partition_params[] = {POP_PARAMS, "owner", "epoch", NULL};

const struct http_route api_pop = {
    .verb = HTTP_GET,
    .path = "/api/v1/pop",
    .access = ACCESS_READ_WRITE,
    .target = TARGET_BODY,
    .need = MAY_POP,
    .op = "pop",
    .handle = pop_labels,
    .query = pop_params,
    .unknown = UNKNOWN_IGNORED,
};

const struct http_route api_pop_queue = {
    .verb = HTTP_GET,
    .path = "/api/v1/pop/queue/:queue",
    .access = ACCESS_READ_WRITE,
    .target = TARGET_PATH,
    .need = MAY_POP,
    .op = "pop_queue",
    .handle = pop_queue,
    .query = pop_queue_params,
    .unknown = UNKNOWN_IGNORED,
};

const struct http_route api_pop_partition = {
    .verb = HTTP_GET,
    .path = "/api/v1/pop/queue/:queue/partition/:partition",
    .access = ACCESS_READ_WRITE,
    .target = TARGET_PATH,
    .need = MAY_POP,
    .op = "pop_partition",
    .handle = pop_partition,
    .query = pop_partition_params,
    .unknown = UNKNOWN_IGNORED,
};
