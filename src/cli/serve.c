// `queen serve`: settings in, server on.
#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "conf/conf.h"
#include "server/server.h"

static int serve(int argc, char **argv);
static int show(const struct conf *c);

const struct cli_command cli_serve = {
    .name = "serve",
    .args = "[--option VALUE]...",
    .summary = "run the broker, with a PostgreSQL of its own unless PG_HOST is set",
    .run_raw = serve,
};

static int serve(int argc, char **argv)
{
    struct conf c;
    struct fault f;

    if (conf_load(&c, argc - 1, argv + 1, environ, &f) != 0) {
        fprintf(stderr, "queen serve: %s\n", f.text);
        return SERVER_BAD_CONF;
    }
    int code;
    if (c.action == CONF_RUN) {
        log_setup(c.log_level, c.log_format);
        code = server_run(&c);
    } else {
        code = show(&c);
    }
    conf_deinit(&c);
    return code;
}

static int show(const struct conf *c)
{
    struct buf out = {0};

    switch (c->action) {
    case CONF_RUN:
        break;
    case CONF_SHOW_HELP:
        conf_help(&out);
        break;
    case CONF_SHOW_CONFIG:
        conf_print(c, &out);
        break;
    case CONF_SHOW_MARKDOWN:
        conf_markdown(&out);
        break;
    case CONF_SHOW_VERSION:
        buf_put_lit(&out, "queen " QUEEN_VERSION "\n");
        break;
    }
    bool written = fwrite(out.ptr, 1, out.len, stdout) == out.len && fflush(stdout) == 0;
    if (!written)
        fprintf(stderr, "queen serve: cannot write to stdout\n");
    buf_free(&out);
    return written ? CLI_OK : SERVER_CANNOT_START;
}
