// ask.h: asking the server that the command line, the environment or a context names.
#ifndef QUEEN_CLI_ASK_H
#define QUEEN_CLI_ASK_H

#include <queen/client.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/span.h"

struct cli;

// Makes cli->client.  0, or an exit code after saying what is wrong.
MUST_USE int ask_connect(struct cli *cli);

// One request.  CLI_OK: the answer is below 400 and *body (borrowed from the command's arena,
// may be NULL) holds it.  Else an exit code, after saying what went wrong and what to do next.
// request is the JSON body; SPAN_NONE: none.
MUST_USE int ask(struct cli *cli, const char *method, span path, span request, span *body);
// The same for a request that may take longer than usual (0: as usual).
MUST_USE int ask_patiently(struct cli *cli, const char *method, span path, span request,
                           unsigned timeout_ms, span *body);

// Says an error of the library in one sentence with the next step; the exit code for it.
int ask_failed(struct cli *cli, const struct queen_error *err);
// Says a sentence of our own, "queen queue ls: ...".  Returns code.
int ask_complain(struct cli *cli, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

// Paths: path_start() with literal text, then escaped parts and parameters.
void path_start(struct buf *b, const char *literal);
void path_of_tenant(struct buf *b, const char *tenant, const char *literal); // the platform's
void path_part(struct buf *b, const char *text);                     // "/" and text, escaped
void path_param(struct buf *b, const char *name, const char *value); // nothing if value is NULL

// A text member of a JSON object that is being written, with a comma unless it is the first;
// nothing if value is NULL.
void ask_put_text(struct buf *b, const char *name, const char *value);

#endif
