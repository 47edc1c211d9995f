// ask.h: requests to the server that the command line, the environment or a context names.
#ifndef QUEEN_CLI_ASK_H
#define QUEEN_CLI_ASK_H

#include <queen/client.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/span.h"

struct cli;

// Creates cli->client. Returns 0, or an exit code after printing the error.
MUST_USE int ask_connect(struct cli *cli);

// Sends one request. CLI_OK: the status is below 400 and *body (borrowed from the command's
// arena, may be NULL) holds the response. Otherwise an exit code, after printing the error and
// advice. request is the JSON body; SPAN_NONE: none.
MUST_USE int ask(struct cli *cli, const char *method, span path, span request, span *body);
// The same for a request that may take longer than usual (0: the default).
MUST_USE int ask_patiently(struct cli *cli, const char *method, span path, span request,
                           unsigned timeout_ms, span *body);

// Prints an error of the library with advice; returns its exit code.
int ask_failed(struct cli *cli, const struct queen_error *err);
// Prints an error, "queen queue ls: ...". Returns code.
int ask_complain(struct cli *cli, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

// Paths: path_start() with literal text, then escaped segments and parameters.
void path_start(struct buf *b, const char *literal);
void path_of_tenant(struct buf *b, const char *tenant, const char *literal); // of the platform
void path_part(struct buf *b, const char *text);                     // "/" and text, escaped
void path_param(struct buf *b, const char *name, const char *value); // nothing if value is NULL

// Writes a text member of a JSON object, with a comma unless it is the first; nothing if value
// is NULL.
void ask_put_text(struct buf *b, const char *name, const char *value);

#endif
