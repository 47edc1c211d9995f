// conn_fixture.h: an HTTP server with test handlers and one client on a socket pair.
#ifndef TEST_CONN_FIXTURE_H
#define TEST_CONN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <uv.h>

#include "base/buf.h"
#include "http/req.h"
#include "http/server.h"

extern struct http_req *parked[512];
extern unsigned n_parked, n_gone, n_observed;
void on_gone(struct http_req *req, void *ctx);
extern uv_loop_t loop;
extern struct http_server *server;
extern int client;
extern bool was_closed;
extern struct buf got; // everything the client has read
extern bool got_eof;
void connect_client(void);
void open_server(struct http_server_conf conf);
int setup(void **state);
void on_closed(void *ctx);
int teardown(void **state);
void turn(void);
void read_answers(void);
void turns(unsigned n);
void send_bytes(span text);
void send_text(const char *text);
const char *got_text(void);
void forget(void);
// Splits off the first answer; its body points into got.
int take_answer(span *body);
void assert_answer(int status, const char *body);
void assert_has(const char *text);
#define HOST      "Host: h\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
// From one thing that happens to the next; the server's sweep always comes.
void let_pass(unsigned ms);
void wait_until_closed(unsigned ms);

#endif
