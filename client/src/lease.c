// lease.c: extends leases.
#include <stdlib.h>

#include "base/mem.h"
#include "codec.h"
#include "fail.h"

enum { DEFAULT_SECONDS = 60 };

// body holds the body, followed by the path.
static void client_lease_encode(const char *lease_id, unsigned seconds, struct buf *body,
                                struct queen_request *req, struct queen_error *err)
{
    *err = (struct queen_error){0};
    if (!lease_id || lease_id[0] == '\0')
        fail_set(err, QUEEN_E_ARGUMENT, "lease_id is missing");
    char *escaped = queen_escape(lease_id ? lease_id : "");
    buf_put_lit(body, "{\"seconds\":");
    buf_put_u64(body, seconds > 0 ? seconds : DEFAULT_SECONDS);
    buf_putc(body, '}');
    size_t len = body->len;
    buf_put_lit(body, "/api/v1/lease/");
    buf_put(body, span_of(escaped));
    buf_put_lit(body, "/extend");
    buf_putc(body, '\0');
    free(escaped);
    *req = (struct queen_request){
        .method = "POST", .path = body->ptr + len, .body = body->ptr, .body_len = len};
}

// A server answers 404 if the lease has expired or belongs to another consumer. A redirection,
// of a proxy that wants a login, has extended nothing.
static void check_extension(const struct queen_response *r, struct queen_error *err)
{
    if (err->code == QUEEN_E_NOT_FOUND)
        err->code = QUEEN_E_LEASE;
    if (r && err->code == 0 && r->status >= 300) {
        fail_set(err, QUEEN_E_PROTOCOL, "the extension of a lease was answered with status %d",
                 r->status);
        err->http_status = r->status;
    }
}

int queen_extend(struct queen_client *c, const char *lease_id, unsigned seconds,
                 struct queen_error *err)
{
    struct queen_request req;
    struct queen_error mine;
    struct buf body = {0};

    err = err ? err : &mine;
    client_lease_encode(lease_id, seconds, &body, &req, err);
    struct queen_response *r = ask(c, &req, &body, err);
    check_extension(r, err);
    queen_response_free(r);
    return err->code;
}

struct extend_call {
    queen_done_cb done;
    void *ctx;
};

static void on_extended(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct extend_call *e = ctx;
    struct queen_error mine = *err;

    check_extension(r, &mine);
    queen_response_free(r);
    e->done(&mine, e->ctx);
    free(e);
}

void queen_extend_start(struct queen_client *c, const char *lease_id, unsigned seconds,
                        queen_done_cb done, void *ctx)
{
    struct extend_call *e = mem_new(struct extend_call);
    struct queen_request req;
    struct queen_error err;
    struct buf body = {0};

    *e = (struct extend_call){done, ctx};
    client_lease_encode(lease_id, seconds, &body, &req, &err);
    submit(c, &req, &body, &err, on_extended, e);
}
