// `queen serve`: reads the settings and runs the server.
#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "conf/conf.h"
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
    .help = conf_help,
    .print = print,
    .markdown = conf_markdown,
};

static int serve_run(int argc, char **argv)
{
    struct conf c;
    struct fault f;

    if (conf_load(&c, argc - 1, argv + 1, environ, &f) != 0) {
        fprintf(stderr, "%s: %s\n", texts.command, f.text);
        return SERVER_BAD_CONF;
    }
    int code;
    if (c.action == CONF_RUN) {
        log_setup(c.log_level, c.log_format);
        code = server_run(&c);
    } else {
        code = show_conf(&texts, c.action, &c) ? CLI_OK : SERVER_CANNOT_START;
    }
    conf_deinit(&c);
    return code;
}

static void print(const void *conf, struct buf *out) { conf_print(conf, out); }
