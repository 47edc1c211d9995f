// ask.c: sends requests to the configured server and explains failures.
#include "cli/ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/context.h"
#include "json/write.h"

static const char default_url[] = "http://localhost:6632";
static const char platform_url[] = "http://localhost:6642";

// ---- messages ----

static void ask_put_name(const struct cli *cli)
{
    fprintf(stderr, "queen %s%s%s: ", cli->parent ? cli->parent : "", cli->parent ? " " : "",
            cli->command->name);
}

int ask_complain(struct cli *cli, int code, const char *fmt, ...)
{
    va_list ap;

    fflush(stdout); // results so far come first
    ask_put_name(cli);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return code;
}

// Advice for the user; NULL: the message is sufficient.
static const char *next_step(const struct cli *cli, const struct queen_error *err)
{
    switch (err->code) {
    case QUEEN_E_UNREACHABLE:
        if (cli->command->platform)
            return "is it running? Start one with queen platform, or name another with "
                   "--url";
        // fall through

    case QUEEN_E_CLOSED: // a producer that gave up
        return "is it running? Start one with queen serve, or name another with --url";
    case QUEEN_E_TIMEOUT:
        return "try again, or use a longer --timeout";
    case QUEEN_E_TLS:
        return strstr(err->text, "certificate")
                   ? "name the authority with --ca-file, or the certificate with --fingerprint"
                   : NULL;
    case QUEEN_E_AUTH:
        return "use --token-file with a token that permits this";
    case QUEEN_E_FULL:
        return "try again later";
    case QUEEN_E_SERVER:
        return "see the log of the server";
    default:
        return NULL;
    }
}

static int exit_code(int code)
{
    switch (code) {
    case QUEEN_E_ARGUMENT:
        return CLI_USAGE;
    case QUEEN_E_UNREACHABLE:
    case QUEEN_E_CLOSED:
    case QUEEN_E_TIMEOUT:
    case QUEEN_E_TLS:
        return CLI_UNREACHABLE;
    case QUEEN_E_REFUSED:
    case QUEEN_E_AUTH:
    case QUEEN_E_CONFLICT:
    case QUEEN_E_FULL:
    case QUEEN_E_LEASE:
        return CLI_REFUSED;
    case QUEEN_E_NOT_FOUND:
        return CLI_NOTHING;
    default:
        return CLI_FAILED;
    }
}

int ask_failed(struct cli *cli, const struct queen_error *err)
{
    const char *step = next_step(cli, err);
    size_t len = strlen(err->text);

    while (len > 0 && err->text[len - 1] == '.')
        len--;
    return ask_complain(cli, exit_code(err->code), "%.*s%s%s", (int)len, err->text,
                        step ? "; " : "", step ? step : "");
}

// ---- which server ----

static const char *first_of(const char *a, const char *b) { return a && a[0] ? a : b; }

// The token of a context is not sent to a server named with --url: it is for another server.
static int choose_server(struct cli *cli, struct queen_options *o)
{
    const struct args *a = &cli->args;
    const char *named = args_text(a, "context");
    struct context found = {0};

    o->url = args_text(a, "url");
    if (!o->url && !named && cli->command->platform)
        o->url = first_of(getenv("PLATFORM_URL"), platform_url); // contexts are brokers
    if (!o->url && !named)
        o->url = first_of(getenv("QUEEN_URL"), NULL);
    if (!o->url) {
        struct fault f;
        if (context_find(named, &cli->arena, &found, &f) != 0)
            return ask_complain(cli, CLI_USAGE, "%s", f.text);
        o->url = first_of(found.url, default_url);
    }
    o->token_file = first_of(args_text(a, "token-file"),
                             first_of(getenv("QUEEN_TOKEN_FILE"), found.token_file));
    o->token = o->token_file ? NULL : first_of(getenv("QUEEN_TOKEN"), NULL);
    o->ca_file = first_of(args_text(a, "ca-file"), found.ca_file);
    o->fingerprint = first_of(args_text(a, "fingerprint"), getenv("QUEEN_FINGERPRINT"));
    o->insecure = args_has(a, "insecure") || found.insecure;
    return CLI_OK;
}

int ask_connect(struct cli *cli)
{
    struct queen_options o = {.user_agent = "queen/" QUEEN_VERSION};
    struct queen_error err;
    int rc = choose_server(cli, &o);

    if (rc != CLI_OK)
        return rc;
    o.request_timeout_ms = (unsigned)args_ms(&cli->args, "timeout", 30000);
    o.connect_timeout_ms = o.request_timeout_ms < 5000 ? o.request_timeout_ms : 5000;
    o.attempts = 2; // a user waits; one retry after a second bridges a restart
    cli->client = queen_client_new(&o, &err);
    return cli->client ? CLI_OK : ask_failed(cli, &err);
}

// ---- requests ----

int ask(struct cli *cli, const char *method, span path, span request, span *body)
{
    return ask_patiently(cli, method, path, request, 0, body);
}

int ask_patiently(struct cli *cli, const char *method, span path, span request,
                  unsigned timeout_ms, span *body)
{
    struct queen_error err;
    struct queen_response *r = queen_request(cli->client,
                                             &(struct queen_request){
                                                 .method = method,
                                                 .path = arena_cstr(&cli->arena, path),
                                                 .body = request.ptr,
                                                 .body_len = request.len,
                                                 .timeout_ms = timeout_ms,
                                                 // It may have created something.
                                                 .once = strcmp(method, "POST") == 0,
                                             },
                                             &err);
    int rc = CLI_OK;

    if (err.code != QUEEN_OK)
        rc = ask_failed(cli, &err);
    else if (body)
        *body = arena_copy(&cli->arena, (span){r->body, r->body_len});
    queen_response_free(r);
    return rc;
}

void path_start(struct buf *b, const char *literal)
{
    buf_reset(b);
    buf_put(b, span_of(literal));
}

static void ask_put_escaped(struct buf *b, const char *text)
{
    char *escaped = queen_escape(text);

    buf_put(b, span_of(escaped));
    free(escaped);
}

void path_part(struct buf *b, const char *text)
{
    buf_putc(b, '/');
    ask_put_escaped(b, text);
}

void path_of_tenant(struct buf *b, const char *tenant, const char *literal)
{
    path_start(b, "/api/v1/tenants");
    path_part(b, tenant);
    buf_put(b, span_of(literal));
}

void path_param(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    buf_putc(b, memchr(b->ptr, '?', b->len) ? '&' : '?');
    buf_put(b, span_of(name));
    buf_putc(b, '=');
    ask_put_escaped(b, value);
}

void ask_put_text(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    if (b->len > 0 && b->ptr[b->len - 1] != '{')
        buf_putc(b, ',');
    js_put_text(b, span_of(name));
    buf_putc(b, ':');
    js_put_text(b, span_of(value));
}
