// The program queen-platform: reads the settings and runs the platform.
#include <stdio.h>
#include <unistd.h>

#include "conf/platform.h"
#include "conf/show_conf.h"
#include "platform/platform.h"

static void platform_print(const void *conf, struct buf *out);

static const struct conf_texts texts = {
    .command = "queen platform",
    .help = platform_conf_help,
    .print = platform_print,
    .markdown = platform_conf_markdown,
};

int main(int argc, char **argv)
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
        platform_conf_hide_secrets(&c, argc - 1, argv + 1, environ);
        code = platform_run(&c);
    } else {
        code = show_conf(&texts, c.action, &c) ? 0 : PLATFORM_CANNOT_START;
        if (c.action == CONF_SHOW_CONFIG && code == 0 && platform_check(&c, &f) != 0) {
            fprintf(stderr, "%s: %s\n", texts.command, f.text);
            code = PLATFORM_BAD_CONF;
        }
    }
    platform_conf_deinit(&c);
    return code;
}

static void platform_print(const void *conf, struct buf *out)
{
    platform_conf_print(conf, out);
}
