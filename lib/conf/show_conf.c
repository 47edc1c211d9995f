// show_conf.c: prints settings to standard output.
#include "conf/show_conf.h"

#include <stdio.h>

bool show_conf(const struct conf_texts *t, enum conf_action action, const void *conf)
{
    struct buf out = {0};

    switch (action) {
    case CONF_RUN:
        break;
    case CONF_SHOW_HELP:
        t->help(&out);
        break;
    case CONF_SHOW_CONFIG:
        t->print(conf, &out);
        break;
    case CONF_SHOW_MARKDOWN:
        t->markdown(&out);
        break;
    case CONF_SHOW_VERSION:
        buf_put_lit(&out, "queen " QUEEN_VERSION "\n");
        break;
    }
    bool written = fwrite(out.ptr, 1, out.len, stdout) == out.len && fflush(stdout) == 0;
    if (!written)
        fprintf(stderr, "%s: cannot write to stdout\n", t->command);
    buf_free(&out);
    return written;
}
