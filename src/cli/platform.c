// `queen platform`: settings in, platform on.
#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "conf/platform.h"
#include "platform/platform.h"

static int run(int argc, char **argv);
static int show(const struct platform_conf *c);

const struct cli_command cli_platform = {
    .name = "platform",
    .args = "[--option VALUE]...",
    .summary = "run the event platform: tenants, their data and segments, on top of a broker",
    .run_raw = run,
};

static int run(int argc, char **argv)
{
    struct platform_conf c;
    struct fault f;

    if (platform_conf_load(&c, argc - 1, argv + 1, environ, &f) != 0) {
        fprintf(stderr, "queen platform: %s\n", f.text);
        return PLATFORM_BAD_CONF;
    }
    int code;
    if (c.action == CONF_RUN) {
        log_setup(c.log_level, c.log_format);
        code = platform_run(&c);
    } else {
        code = show(&c);
    }
    platform_conf_deinit(&c);
    return code;
}

static int show(const struct platform_conf *c)
{
    struct buf out = {0};

    switch (c->action) {
    case CONF_RUN:
        break;
    case CONF_SHOW_HELP:
        platform_conf_help(&out);
        break;
    case CONF_SHOW_CONFIG:
        platform_conf_print(c, &out);
        break;
    case CONF_SHOW_MARKDOWN:
        platform_conf_markdown(&out);
        break;
    case CONF_SHOW_VERSION:
        buf_put_lit(&out, "queen " QUEEN_VERSION "\n");
        break;
    }
    bool written = fwrite(out.ptr, 1, out.len, stdout) == out.len && fflush(stdout) == 0;
    if (!written)
        fprintf(stderr, "queen platform: cannot write to stdout\n");
    buf_free(&out);
    return written ? CLI_OK : PLATFORM_CANNOT_START;
}
