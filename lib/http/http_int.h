// http_int.h: declarations shared by the files of this folder.
//
//     socket ──► conn.c ──► parser.c ──► req ──► handler ──► reply.c
//                                                               │
//     socket ◄── output.c ◄── queue of the connection ◄────────┘
//
// A connection owns three things only while it needs them: a parser and a request while a
// request is being received, and chunks of output while the peer is slow. An idle connection
// consists of this struct only.
#ifndef QUEEN_HTTP_HTTP_INT_H
#define QUEEN_HTTP_HTTP_INT_H

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/parser.h"
#include "http/req.h"
#include "http/server.h"

enum {
    HTTP_READ_BYTES = 128 * 1024,   // one read, shared by all connections of the loop
    HTTP_CIPHER_BYTES = 64 * 1024,  // one read of a TLS connection
    HTTP_SCRATCH_BYTES = 64 * 1024, // heads and small bodies of one write
    HTTP_SMALL_BODY = 8 * 1024,   // a body up to this size is copied behind its head instead of
                                  // getting its own iovec
    HTTP_BACKLOG_BYTES = 4 << 20, // unsent answers of a connection before reading pauses
    HTTP_DIRECT_BYTES = 1 << 20,  // one read straight into a large body
    HTTP_HEAD_RESERVE = 512,      // enough for an answer's head without extra headers
    HTTP_EXTRA_BYTES = 16 * 1024, // extra header lines of one answer
    HTTP_BODY_ROOM = 64 * 1024,   // of a body, reserved before its bytes arrive
    HTTP_MIN_BODY_RATE = 1024,    // bytes per second, over each header_timeout_ms
    HTTP_HANDSHAKES = 16,         // steps of TLS handshakes in one turn of the loop
    HTTP_LINGER_MS = 2000,        // a refused client may still be sending
};

// A connection is in one place at a time, which determines its timeout. Each place is a list
// ordered by stamp, so the sweep only visits connections that are overdue.
enum http_place {
    PLACE_HANDSHAKE, // TLS is being negotiated
    PLACE_IDLE,
    PLACE_RECEIVING, // a request is being received, perhaps behind unanswered ones
    PLACE_WRITING,   // the peer does not read as fast as we write
    PLACE_LINGERING, // last answer sent; discarding further input
    PLACE_BLOCKED,   // like PARKED, but it holds memory: answers behind the unanswered request,
                     // or input that is not parsed yet
    PLACE_PARKED,    // a request is unanswered: no timeout
    N_PLACES,
};

TAILQ_HEAD(http_conn_list, http_conn);
STAILQ_HEAD(http_req_queue, http_req);
STAILQ_HEAD(http_chunk_queue, http_chunk);
STAILQ_HEAD(http_job_queue, http_job);

struct http_chunk { // output that did not fit into the socket
    struct buf data;
    span constant; // instead of data, if not SPAN_NONE
    size_t sent;
    STAILQ_ENTRY(http_chunk) link;
};

struct http_conn {
    uv_poll_t poll;
    struct http_server *server;
    TAILQ_ENTRY(http_conn) place_link;
    TAILQ_ENTRY(http_conn) dirty_link;
    uint64_t stamp_ms; // loop time of entering the place, or of the last progress in it

    struct http_req_queue queue; // complete requests, in order; answers leave from the front
    struct http_chunk_queue unsent;
    size_t out_bytes; // bytes not yet sent, and bodies of answers still in queue
    size_t backlog;   // what this connection adds to server->backlog
    char *input;      // read but not parsed, because too many requests are unanswered
    uint32_t input_len, input_at;
    size_t body_bytes; // of the body being received, since the last progress
    struct http_req *in;
    struct http_parser *parser; // while in is not NULL
    struct tls_stream *tls;     // NULL: plain HTTP
    char *client_names;         // of its certificate, separated by NUL; NULL: none, or not read
    uint32_t n_client_names;

    _Atomic unsigned *counter; // of its sender's connections; NULL: none
    unsigned n_queue;
    int fd;
    uint16_t address; // slot of addresses.h
    uint8_t ip[16];   // of the peer, as addresses_peer(); all zero: unknown
    uint8_t place;
    uint8_t watching;  // events currently polled for
    bool dirty;        // on the server's list of connections with something to write
    bool deaf;         // no request after those in queue will be read
    bool close_after;  // the last answer is on its way out
    bool linger;       // close gracefully: the peer may still be sending
    bool unpacking;    // decompressing the body of a request; those behind it wait
    bool eof;          // the peer has stopped sending; answers are still sent
    bool gone;         // a long poll arrived after eof: close at the end of the turn
    bool owe_continue; // send 100 Continue once the queue is empty
    bool closed;
    bool has_client_names; // they were read
    bool greeted;          // the first bytes of a TLS connection have arrived
};

// Thousands of idle clients may be connected, so growth of this struct must not go unnoticed.
_Static_assert(sizeof(struct http_conn) <= 512, "an idle connection is too large");

enum http_req_state { REQ_ARRIVING, REQ_PENDING, REQ_ANSWERED };

struct http_req {
    struct http_msg msg;
    struct http_server *server;
    struct http_conn *conn; // NULL: the peer has disconnected
    STAILQ_ENTRY(http_req) link;
    const struct http_route *route;
    span path, query;               // of msg's target
    struct http_identity *identity; // the sender; NULL: anonymous
    LIST_ENTRY(http_req) same_sender;
    bool expelled; // not in the list of its identity any more
    span params[HTTP_MAX_PARAMS];
    struct arena arena;
    uint64_t started_us;
    uint8_t ip[16]; // of the peer, also after it has disconnected
    size_t charged; // body bytes counted in server->inflight
    void (*gone)(struct http_req *req, void *ctx);
    void *gone_ctx;

    struct buf answer;
    span constant;    // the body, instead of answer, if not SPAN_NONE
    struct buf extra; // header lines
    int status;
    int refused; // answer with this code instead of calling the handler
    uint8_t state;
    bool other_verb;          // no route, but the path has one for another method
    bool handled;             // it was admitted: the answer is that of its handler
    bool admitted;            // the guard has accepted the request at its head
    bool is_json;             // the answer
    bool packable;            // the answer is text and may be compressed
    struct http_job *job;     // its body waits for decompression, or is being decompressed
    bool blocked;             // behind a request whose body is being decompressed
    unsigned retry_after_s;   // 0: 1
    uint64_t db_us;           // for Server-Timing; 0: unknown
    span id;                  // set on first use
    struct trace_span *trace; // owned by http_server_conf.begin and traced; NULL: none
    bool late;                // on the server's list `late`, which also frees it
    bool close;               // close the connection after this answer
};

struct http_server {
    uv_loop_t *loop;
    struct http_server_conf conf;
    struct http_server_stats *stats, own_stats;
    struct http_conn_list place[N_PLACES];
    uint64_t timeout_ms[N_PLACES]; // 0: none
    struct http_conn_list dirty;
    unsigned n_dirty;
    unsigned n_handshakes; // steps in this turn
    unsigned n_conns;      // until their memory is freed
    unsigned n_pending;    // requests being handled
    size_t inflight;       // bytes of bodies
    size_t backlog;        // bytes of unsent answers and of unparsed input

    struct http_job_queue jobs; // waiting for a thread, in order; see coding.c
    unsigned n_jobs;            // submitted to the thread pool

    struct http_req_queue trash; // answered, but the peer has disconnected
    struct http_req_queue late;  // on_gone hooks set after the peer had disconnected
    struct http_req_queue spare;
    unsigned n_spare;
    struct http_parser *parsers[32];
    unsigned n_parsers;

    uv_prepare_t turn; // runs just before the loop sleeps
    uv_idle_t
        busy; // active while work is left for the end of the turn: the loop must not sleep
    uv_timer_t sweep;
    unsigned n_handles;
    bool draining, closing, handles_closing;
    void (*closed)(void *ctx);
    void *closed_ctx;

    uint64_t evicted_s; // second of the last http.slow_readers_closed line ...
    unsigned n_evicted; // ... and the number of connections closed since
    uint64_t failed_s;  // second of the last http.request_failed line ...
    unsigned n_failed;  // ... and the number of failures not logged since
    uint64_t date_s;
    char date[40]; // "Date: ...\r\n"
    unsigned date_len;
    char *cipher; // one read of a TLS connection; NULL until there is one
    char input[HTTP_READ_BYTES];
    char scratch[HTTP_SCRATCH_BYTES];
};

// ---- server.c ----
struct http_req *http_server_take_req(struct http_server *s);
void http_server_recycle(struct http_server *s, struct http_req *req);
struct http_parser *http_server_take_parser(struct http_server *s);
void http_server_return_parser(struct http_server *s, struct http_parser *p);
void http_server_wake(struct http_server *s); // schedules work for the end of this turn
void http_server_discard(struct http_server *s, struct http_req *req); // moves req to the trash
void http_server_finish(struct http_server *s); // if closing and nothing is left

// ---- conn.c ----
void http_conn_open(struct http_server *s, int fd, struct ssl_ctx_st *tls);
void http_conn_close(struct http_conn *c); // freed in the closing phase
void http_conn_expire(struct http_conn *c);
void http_conn_uncount(struct http_conn *c); // from the connections of its sender
void http_conn_touch(struct http_conn *c);   // an answer is ready
// Moves the connection to its place and polls for the right events.
void http_conn_settle(struct http_conn *c, bool progress);
void http_conn_count_backlog(struct http_conn *c); // after a change of out_bytes or input

// ---- receive.c ----
// Processes bytes from the peer; also the entry point of the fuzzer.
void http_conn_input(struct http_conn *c, const char *data, size_t len);
// Parses input that was kept back, if the limits allow it again.
void http_conn_resume(struct http_conn *c);
void http_conn_dispatch(struct http_req *req); // calls the handler
// The body of req is decompressed: handles the requests that waited behind it.
void http_conn_release(struct http_conn *c, struct http_req *req);
void http_receive_begin(struct http_conn *c); // a request starts to arrive
// Answers the request that is arriving; the connection cannot be used after this.
void http_receive_refuse(struct http_conn *c, int status, const char *text);
void http_receive_drop(struct http_conn *c);       // the request that is arriving
void http_receive_drop_input(struct http_conn *c); // input that was kept back
// Too many unanswered requests or unsent bytes.
bool http_receive_is_full(const struct http_conn *c);

// ---- output.c ----
void http_conn_flush(struct http_conn *c);
void http_output_drop(struct http_conn *c);
// The body of an answer.
static inline span http_answer_body(const struct http_req *req)
{
    return req->constant.ptr ? req->constant : buf_span(&req->answer);
}

// ---- reply.c ----
size_t http_reply_head(struct http_req *req, bool close,
                       char *out); // at most HEAD_RESERVE + extra
void http_reply_status(struct http_req *req, int status, const char *text);
void http_reply_preflight(struct http_req *req);
// True: the request comes from a web page that must not use this server, and is answered.
bool http_reply_foreign(struct http_req *req);
void http_reply_allow(struct http_req *req, unsigned verbs);

void http_reply_settle(struct http_req *req, int status); // the answer is complete

// ---- coding.c ---- True: answered, or will be dispatched later.
bool http_coding_unpack(struct http_req *req);
// the client has disconnected: skip the decompression
void http_coding_drop(struct http_req *req);
// True: will be settled later.
bool http_coding_pack(struct http_req *req, int status);

// ---- req.c ----
void http_req_split_target(struct http_req *req);
void http_req_forget_identity(struct http_req *req);

#endif
