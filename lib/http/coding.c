// coding.c: Content-Encoding of requests and answers.
//
// Small bodies are compressed and decompressed on the loop, large ones in libuv's thread pool,
// so that other requests do not wait for them. A loop submits only a few such jobs at a time,
// so that threads are left for files, name lookups and migrations. The other jobs wait here in
// order; a job is dropped when its client disconnects. While the body of a request is being
// decompressed, the requests behind it on its connection wait, because requests are
// handled in order.
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/gzip.h"
#include "http/http_int.h"

enum {
    PACK_HERE = 32 * 1024,  // takes about a third of a millisecond
    UNPACK_HERE = 4 * 1024, // may expand a thousandfold
    MAX_JOBS = HTTP_CODING_THREADS,
};

// While a thread works on the job, the request belongs to that thread: the loop may change only
// `conn`.
struct http_job {
    uv_work_t work;
    STAILQ_ENTRY(http_job) link;
    uv_work_cb run;
    uv_after_work_cb done;
    bool waits; // is in server->jobs
    struct http_req *req;
    struct buf out;
    size_t max;
    int status; // of the answer to compress
    int rc;
};

static void start_waiting(struct http_server *s);
static void unpack(uv_work_t *work);
static void unpacked(uv_work_t *work, int status);
static void take_body(struct http_job *job);
static void pack(uv_work_t *work);
static void take_packed(struct http_req *req, struct buf *out, int rc);
static void packed(uv_work_t *work, int status);

static struct http_job *http_coding_start(struct http_req *req, struct http_job made,
                                          uv_work_cb run, uv_after_work_cb done)
{
    struct http_server *s = req->server;
    struct http_job *job = mem_new(struct http_job);

    *job = made;
    job->work.data = job;
    job->run = run;
    job->done = done;
    job->waits = true;
    STAILQ_INSERT_TAIL(&s->jobs, job, link);
    start_waiting(s);
    return job;
}

static void start_waiting(struct http_server *s)
{
    struct http_job *job;

    while (s->n_jobs < MAX_JOBS && (job = STAILQ_FIRST(&s->jobs))) {
        STAILQ_REMOVE_HEAD(&s->jobs, link);
        job->waits = false;
        s->n_jobs++;
        int rc = uv_queue_work(s->loop, &job->work, job->run, job->done);
        if (rc != 0) // fails only for a job without a function
            BUG("uv_queue_work: %s", uv_err_name(rc));
    }
}

static void http_coding_finish(struct http_server *s, struct http_job *job)
{
    free(job);
    s->n_jobs--;
    start_waiting(s);
}

// ---- requests ----

bool http_coding_unpack(struct http_req *req)
{
    span coding = http_req_header(req, SPAN("content-encoding"));
    struct http_job job = {.req = req, .max = req->server->conf.max_body_bytes};

    if (coding.len == 0 || str_eq_nocase(coding, SPAN("identity")))
        return false;
    if (!str_eq_nocase(coding, SPAN("gzip")) && !str_eq_nocase(coding, SPAN("x-gzip"))) {
        http_reply_header(req, SPAN("Accept-Encoding"), SPAN("gzip"));
        http_reply_errf(req, QE_UNSUPPORTED, "Content-Encoding must be gzip or identity");
        return true;
    }
    if (req->msg.body.len > UNPACK_HERE) {
        req->conn->unpacking = true;
        req->job = http_coding_start(req, job, unpack, unpacked);
        return true;
    }
    job.work.data = &job;
    unpack(&job.work);
    take_body(&job);
    return job.rc != 0; // then the request has been answered
}

void http_coding_drop(struct http_req *req)
{
    struct http_job *job = req->job;

    if (!job->waits)
        return; // a thread has it: unpacked() will be called
    STAILQ_REMOVE(&req->server->jobs, job, http_job, link);
    free(job);
    req->job = NULL;
    http_reply_empty(req, 204); // only frees it
}

static void unpack(uv_work_t *work)
{
    struct http_job *job = work->data;

    job->out.max = job->max + 1;
    job->rc = gzip_unpack(buf_span(&job->req->msg.body), job->max, &job->out);
}

static void unpacked(uv_work_t *work, int status)
{
    struct http_job *job = work->data;
    struct http_req *req = job->req;
    struct http_server *s = req->server;
    struct http_conn *c = req->conn;

    (void)status; // jobs are never cancelled
    req->job = NULL;
    take_body(job);
    if (job->rc == 0 && !c)
        http_reply_empty(req, 204); // only frees it
    else if (job->rc == 0)
        http_conn_dispatch(req);
    if (c)
        http_conn_release(c, req);
    http_coding_finish(s, job);
}

static void take_body(struct http_job *job)
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
        http_reply_errf(req, QE_BAD_REQUEST, "the body is not valid gzip");
    else
        http_reply_err(req, job->rc);
}

// ---- answers ----

bool http_coding_pack(struct http_req *req, int status)
{
    struct http_job job = {.req = req, .status = status};

    http_reply_header(req, SPAN("Vary"), SPAN("Accept-Encoding"));
    if (!gzip_is_wanted(http_req_header(req, SPAN("accept-encoding"))))
        return false;
    if (http_answer_body(req).len > PACK_HERE) {
        (void)http_coding_start(req, job, pack, packed);
        return true;
    }
    job.work.data = &job;
    pack(&job.work);
    take_packed(req, &job.out, job.rc);
    return false;
}

static void pack(uv_work_t *work)
{
    struct http_job *job = work->data;

    job->rc = gzip_pack(http_answer_body(job->req), &job->out);
}

static void take_packed(struct http_req *req, struct buf *out, int rc)
{
    if (rc != 0) { // send it uncompressed
        buf_free(out);
        return;
    }
    http_reply_header(req, SPAN("Content-Encoding"), SPAN("gzip"));
    buf_free(&req->answer);
    req->answer = *out;
    req->constant = SPAN_NONE;
}

static void packed(uv_work_t *work, int status)
{
    struct http_job *job = work->data;
    struct http_server *s = job->req->server;

    (void)status;
    take_packed(job->req, &job->out, job->rc);
    http_reply_settle(job->req, job->status);
    http_coding_finish(s, job);
}
