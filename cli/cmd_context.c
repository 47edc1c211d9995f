// `queen context`: named servers.
#include <string.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/context.h"
#include "cli/table.h"
#include "json/write.h"

static int cmd_context_add(struct cli *cli)
{
    const char *name = cli->args.rest[0];
    struct contexts all;
    struct fault f;

    struct context fresh = {
        .name = name,
        .url = args_text(&cli->args, "url"),
        .token_file = args_text(&cli->args, "token-file"),
        .ca_file = args_text(&cli->args, "ca-file"),
        .insecure = args_has(&cli->args, "insecure"),
    };
    if (!fresh.url)
        return ask_complain(cli, CLI_USAGE, "--url must be given");
    if (contexts_read(&all, &cli->arena, &f) != 0)
        return ask_complain(cli, CLI_FAILED, "%s", f.text);
    struct context *place = contexts_named(&all, name);
    bool is_first = all.n == 0;
    if (!place) {
        struct context *items = arena_new_array(&cli->arena, struct context, all.n + 1);
        if (all.n > 0)
            memcpy(items, all.items, all.n * sizeof *items);
        all.items = items;
        place = &all.items[all.n++];
    }
    fresh.current = place->current || is_first;
    *place = fresh;
    if (contexts_write(&all, &cli->arena, &f) != 0)
        return ask_complain(cli, CLI_FAILED, "%s", f.text);
    out_note(&cli->out, "%s is %s%s", name, fresh.url, fresh.current ? ", in use" : "");
    return CLI_OK;
}

static int cmd_context_list(struct cli *cli)
{
    static const struct column columns[] = {{"CONTEXT", "name", CELL_TEXT},
                                            {"URL", "url", CELL_LONG},
                                            {"TOKEN FILE", "tokenFile", CELL_LONG},
                                            {"IN USE", "current", CELL_YES}};
    struct contexts all;
    struct fault f;
    struct buf b = {0};

    if (contexts_read(&all, &cli->arena, &f) != 0)
        return ask_complain(cli, CLI_FAILED, "%s", f.text);
    struct table *t = table_new(cli, columns, countof(columns));
    for (size_t i = 0; i < all.n; i++) {
        buf_reset(&b);
        context_put(&b, &all.items[i]);
        table_add(t, buf_span(&b));
    }
    buf_free(&b);
    if (all.n == 0)
        out_note(&cli->out, "no contexts yet; add one with queen context add NAME --url URL");
    table_free(t);
    return CLI_OK;
}

static int use(struct cli *cli)
{
    const char *name = cli->args.rest[0];
    struct contexts all;
    struct fault f;

    if (contexts_read(&all, &cli->arena, &f) != 0)
        return ask_complain(cli, CLI_FAILED, "%s", f.text);
    struct context *chosen = contexts_named(&all, name);
    if (!chosen)
        return ask_complain(cli, CLI_NOTHING, "no context \"%s\"; see queen context ls", name);
    for (size_t i = 0; i < all.n; i++)
        all.items[i].current = &all.items[i] == chosen;
    if (contexts_write(&all, &cli->arena, &f) != 0)
        return ask_complain(cli, CLI_FAILED, "%s", f.text);
    out_note(&cli->out, "commands now use %s, unless QUEEN_URL or --url is set", chosen->url);
    return CLI_OK;
}

static int cmd_context_forget(struct cli *cli)
{
    const char *name = cli->args.rest[0];
    struct contexts all;
    struct fault f;

    if (contexts_read(&all, &cli->arena, &f) != 0)
        return ask_complain(cli, CLI_FAILED, "%s", f.text);
    struct context *gone = contexts_named(&all, name);
    if (!gone)
        return ask_complain(cli, CLI_NOTHING, "no context \"%s\"; see queen context ls", name);
    size_t at = (size_t)(gone - all.items);
    memmove(gone, gone + 1, (all.n - at - 1) * sizeof *gone);
    all.n--;
    if (contexts_write(&all, &cli->arena, &f) != 0)
        return ask_complain(cli, CLI_FAILED, "%s", f.text);
    out_note(&cli->out, "%s was removed", name);
    return CLI_OK;
}

static const struct cli_option add_options[] = {
    {"url", 'u', CLI_TEXT, "URL", "URL of the server; several separated by commas"},
    {"token-file", 0, CLI_TEXT, "FILE",
     "file with the bearer token; read again when it changes"},
    {"ca-file", 0, CLI_TEXT, "FILE", "PEM file of trusted authorities (the system's)"},
    {"insecure", 0, CLI_FLAG, NULL, "accept any certificate; for experiments only"},
};

static const struct cli_command context_add = {
    .name = "add",
    .args = "NAME",
    .summary = "give a server a name, or change it",
    .about =
        "The first context becomes the current one. Only the name of the token file is stored.",
    .examples = "queen context add prod --url https://queen.example:6632 --token-file "
                "~/.queen-token|a server with TLS and tokens\n"
                "queen context add pair --url http://a:6632,http://b:6632|two brokers",
    CLI_OPTIONS(add_options),
    .offline = true,
    .run = cmd_context_add,
};
static const struct cli_command context_ls = {
    .name = "ls",
    .args = "",
    .summary = "list the contexts",
    .examples = "queen context ls|all contexts, with the current one marked",
    .offline = true,
    .run = cmd_context_list,
};
static const struct cli_command context_use = {
    .name = "use",
    .args = "NAME",
    .summary = "make a context the current one",
    .examples = "queen context use prod|until another is chosen",
    .offline = true,
    .run = use,
};
static const struct cli_command context_rm = {
    .name = "rm",
    .args = "NAME",
    .summary = "remove a context",
    .examples = "queen context rm old|does not affect the server",
    .offline = true,
    .run = cmd_context_forget,
};

static const struct cli_command *const subs[] = {&context_add, &context_ls, &context_use,
                                                 &context_rm, NULL};
const struct cli_command cli_context = {
    .name = "context",
    .summary = "manage named servers",
    .about = "A command uses the first of these that is set: --url, --context, QUEEN_URL, "
             "the current context, http://localhost:6632.",
    .subs = subs,
};
