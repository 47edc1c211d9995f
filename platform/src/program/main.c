// `queen platform`: settings in, platform on.
#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/show_conf.h"
#include "conf/platform.h"
#include "platform/platform.h"

static int run(int argc, char **argv);
static void print(const void *conf, struct buf *out);

const struct cli_command cli_platform = {
    .name = "platform",
    .args = "[--option VALUE]...",
    .summary = "run the event platform: tenants, their data and segments, on top of a broker",
    .run_raw = run,
};

static const struct conf_texts texts = {
    .command = "queen platform",
    .help = platform_conf_help,
    .print = print,
    .markdown = platform_conf_markdown,
};

static int run(int argc, char **argv)
{
    struct platform_conf c;
    struct fault f;

    if (platform_conf_load(&c, argc - 1, argv + 1, environ, &f) != 0) {
        fprintf(stderr, "%s: %s\n", texts.command, f.text);
        return PLATFORM_BAD_CONF;
    }
    int code;
    if (c.action == CONF_RUN) {
        log_setup(c.log_level, c.log_format);
        code = platform_run(&c);
    } else {
        code = show_conf(&texts, c.action, &c) ? CLI_OK : PLATFORM_CANNOT_START;
    }
    platform_conf_deinit(&c);
    return code;
}

static void print(const void *conf, struct buf *out) { platform_conf_print(conf, out); }
