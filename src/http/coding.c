// coding.c: Content-Encoding of requests and answers.
//
// Small bodies are packed and unpacked where they are; large ones by libuv's threads, so that
// nobody else's request waits for them.  A request whose body is being unpacked holds back
// those behind it on its connection: they are handled in the order they came.
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/gzip.h"
#include "http/http_int.h"

enum {
    PACK_HERE = 32 * 1024,  // a third of a millisecond
    UNPACK_HERE = 4 * 1024, // may become a thousand times as much
};

// While a thread works for it, the request is its thread's: only `conn` may change.
struct job {
    uv_work_t work;
    struct http_req *req;
    struct buf out;
    size_t max;
    int status; // of the answer to pack
    int rc;
};

static void unpack(uv_work_t *work);
static void unpacked(uv_work_t *work, int status);
static void take_body(struct job *job);
static void pack(uv_work_t *work);
static void take_packed(struct http_req *req, struct buf *out, int rc);
static void packed(uv_work_t *work, int status);

static bool start(struct http_req *req, struct job made, uv_work_cb run, uv_after_work_cb done)
{
    struct job *job = mem_new(struct job);

    *job = made;
    job->work.data = job;
    if (uv_queue_work(req->server->loop, &job->work, run, done) == 0)
        return true;
    free(job);
    return false;
}

// ---- requests ----

bool http_coding_unpack(struct http_req *req)
{
    span coding = http_req_header(req, SPAN("content-encoding"));
    struct job job = {.req = req, .max = req->server->conf.max_body_bytes};

    if (coding.len == 0 || str_eq_nocase(coding, SPAN("identity")))
        return false;
    if (!str_eq_nocase(coding, SPAN("gzip")) && !str_eq_nocase(coding, SPAN("x-gzip"))) {
        http_reply_header(req, SPAN("Accept-Encoding"), SPAN("gzip"));
        http_reply_errf(req, QE_UNSUPPORTED, "Content-Encoding must be gzip or identity");
        return true;
    }
    if (req->msg.body.len > UNPACK_HERE && start(req, job, unpack, unpacked)) {
        req->conn->unpacking = true;
        return true;
    }
    job.work.data = &job;
    unpack(&job.work);
    take_body(&job);
    return job.rc != 0; // then it is answered
}

static void unpack(uv_work_t *work)
{
    struct job *job = work->data;

    job->out.max = job->max + 1;
    job->rc = gzip_unpack(buf_span(&job->req->msg.body), job->max, &job->out);
}

static void unpacked(uv_work_t *work, int status)
{
    struct job *job = work->data;
    struct http_req *req = job->req;
    struct http_conn *c = req->conn;

    (void)status; // nobody cancels
    take_body(job);
    if (job->rc == 0 && !c)
        http_reply_empty(req, 204); // only frees it
    else if (job->rc == 0)
        http_conn_dispatch(req);
    free(job);
    if (c)
        http_conn_release(c, req);
}

static void take_body(struct job *job)
{
    struct http_req *req = job->req;
    struct http_server *s = req->server;

    if (job->rc == 0) {
        s->inflight += job->out.len;
        s->inflight -= req->charged;
        req->charged = job->out.len;
        if (s->conf.max_inflight_bytes > 0 && s->inflight > s->conf.max_inflight_bytes &&
            s->inflight > req->charged)
            job->rc = QE_BUSY;
    }
    if (job->rc == 0) {
        buf_free(&req->msg.body);
        req->msg.body = job->out;
        return;
    }
    buf_free(&job->out);
    if (job->rc == QE_BAD_REQUEST)
        http_reply_errf(req, QE_BAD_REQUEST, "the body is not gzip, or cut off");
    else
        http_reply_err(req, job->rc);
}

// ---- answers ----

bool http_coding_pack(struct http_req *req, int status)
{
    struct job job = {.req = req, .status = status};

    http_reply_header(req, SPAN("Vary"), SPAN("Accept-Encoding"));
    if (!gzip_is_wanted(http_req_header(req, SPAN("accept-encoding"))))
        return false;
    if (req->answer.len > PACK_HERE && start(req, job, pack, packed))
        return true;
    job.work.data = &job;
    pack(&job.work);
    take_packed(req, &job.out, job.rc);
    return false;
}

static void pack(uv_work_t *work)
{
    struct job *job = work->data;

    job->rc = gzip_pack(buf_span(&job->req->answer), &job->out);
}

static void take_packed(struct http_req *req, struct buf *out, int rc)
{
    if (rc != 0) { // as it is, then
        buf_free(out);
        return;
    }
    http_reply_header(req, SPAN("Content-Encoding"), SPAN("gzip"));
    buf_free(&req->answer);
    req->answer = *out;
}

static void packed(uv_work_t *work, int status)
{
    struct job *job = work->data;

    (void)status;
    take_packed(job->req, &job->out, job->rc);
    http_reply_settle(job->req, job->status);
    free(job);
}
