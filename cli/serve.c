// `queen serve`: reads the settings and runs the server.
#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "conf/serve.h"
#include "conf/show_conf.h"
#include "server/server.h"

static int serve_run(int argc, char **argv);
static void print(const void *conf, struct buf *out);

const struct cli_command cli_serve = {
    .name = "serve",
    .args = "[--option VALUE]...",
    .summary = "run the broker, with an embedded PostgreSQL unless PG_HOST is set",
    .run_raw = serve_run,
};

static const struct conf_texts texts = {
    .command = "queen serve",
    .help = serve_conf_help,
    .print = print,
    .markdown = serve_conf_markdown,
};

static int serve_run(int argc, char **argv)
{
    struct serve_conf c;
    struct fault f;

    if (serve_conf_load(&c, argc - 1, argv + 1, environ, &f) != 0) {
        fprintf(stderr, "%s: %s\n", texts.command, f.text);
        return SERVER_BAD_CONF;
    }
    int code;
    if (c.action == CONF_RUN) {
        log_setup(c.log_level, c.log_format);
        serve_conf_hide_secrets(&c, argc - 1, argv + 1, environ);
        code = server_run(&c);
    } else {
        code = show_conf(&texts, c.action, &c) ? CLI_OK : SERVER_CANNOT_START;
        if (c.action == CONF_SHOW_CONFIG && code == CLI_OK && server_check(&c, &f) != 0) {
            fprintf(stderr, "%s: %s\n", texts.command, f.text);
            code = SERVER_BAD_CONF;
        }
    }
    serve_conf_deinit(&c);
    return code;
}

static void print(const void *conf, struct buf *out) { serve_conf_print(conf, out); }
