// common.c: options that all commands share.
#include "cli/common.h"

#include "base/attrs.h"
#include "cli/cli.h"

// The first options are for every command, the others for commands that use a server.
static const struct cli_option options[] = {
    {"json", 'j', CLI_FLAG, NULL, "one JSON object per line (the default into a pipe or file)"},
    {"table", 0, CLI_FLAG, NULL, "tables, also into a pipe or file"},
    {"no-color", 0, CLI_FLAG, NULL, "no colours, like NO_COLOR in the environment"},
    {"quiet", 'q', CLI_FLAG, NULL, "only results and errors"},
    {"help", 'h', CLI_FLAG, NULL, "this text"},
    {"url", 'u', CLI_TEXT, "URL", "the server (QUEEN_URL, or the current context)"},
    {"context", 'c', CLI_TEXT, "NAME", "the server of this context; see queen context"},
    {"token-file", 0, CLI_TEXT, "FILE", "file with the bearer token (QUEEN_TOKEN_FILE)"},
    {"ca-file", 0, CLI_TEXT, "FILE", "PEM file of trusted authorities (the system's)"},
    {"fingerprint", 0, CLI_TEXT, "HEX", "accept only the certificate with this SHA-256"},
    {"insecure", 0, CLI_FLAG, NULL, "accept any certificate; for experiments only"},
    {"timeout", 0, CLI_DURATION, "TIME", "time limit of a request (30s)"},
};
enum { N_OFFLINE = 5 };

void common_options(const struct cli_command *c, const struct cli_option **table, size_t *n)
{
    *table = options;
    *n = c->offline ? N_OFFLINE : countof(options);
}
