// serve_show.c: prints the settings of `queen serve`: log lines, --print-config, --help,
// markdown.
#include <stdint.h>

#include "base/log.h"
#include "base/str.h"
#include "conf/serve_int.h"

// The contract's minimum for QUEEN_MAX_BODY_BYTES.
static const size_t promised_body_bytes = (size_t)64 << 20;

static const char *nearest(const char *name)
{
    const char *best = serve_keys[0].name;
    unsigned least = UINT32_MAX;
    for (unsigned i = 0; i < serve_n_keys + serve_n_unused; i++) {
        const char *known =
            i < serve_n_keys ? serve_keys[i].name : serve_unused[i - serve_n_keys].name;
        unsigned d = str_distance(span_of(name), span_of(known));
        if (d < least) {
            least = d;
            best = known;
        }
    }
    return best;
}

void serve_conf_log(const struct serve_conf *c)
{
    for (unsigned i = 0; i < c->n_unknown; i++)
        log_warn("conf.unknown", "name=\"%.200s\" nearest=%s", c->unknown[i],
                 nearest(c->unknown[i]));
    if (c->unused[0] != '\0')
        log_warn("conf.unused", "names=\"%s\" note=\"set, but not used by this version\"",
                 c->unused);
    if (c->max_body_bytes < promised_body_bytes)
        log_warn("conf.small_body",
                 "name=QUEEN_MAX_BODY_BYTES value=%zu note=\"clients may rely on %zu\"",
                 c->max_body_bytes, promised_body_bytes);
}

void serve_conf_print(const struct serve_conf *c, struct buf *out)
{
    conf_put_values(&serve_table, c, c->origin, out);
}

void serve_conf_each(const struct serve_conf *c,
                     void (*each)(void *ctx, const struct conf_value *v), void *ctx)
{
    conf_each_value(&serve_table, c, c->origin, each, ctx);
}

void serve_conf_help(struct buf *out)
{
    buf_put_lit(
        out,
        "usage: queen serve [--option VALUE | --option=VALUE]...\n\n"
        "Without PG_HOST the server starts an embedded PostgreSQL. Every option is also an\n"
        "environment variable: --port is PORT. An option overrides the variable.\n\n");
    conf_put_help(&serve_table, out);
}

void serve_conf_markdown(struct buf *out)
{
    buf_put_lit(out,
                "# Settings\n\n"
                "Generated from `broker/src/conf/serve_keys.c` by `make docs`; do not edit.\n\n"
                "Each setting is an environment variable and an option of `queen serve`. The "
                "option overrides\n"
                "the variable, the variable overrides the default; unset and empty mean the "
                "default. Booleans\n"
                "are `true` or `1`, `false` or `0`. An invalid value prevents "
                "start-up with an error that names it.\n"
                "`queen serve --print-config` shows every value and where it came from.\n");
    conf_put_tables(&serve_table, out);
    buf_put_lit(out, "\n## Known but not used by this version\n\n"
                     "Accepted without effect; the server logs a warning if one is set.\n\n"
                     "| variable | why |\n| --- | --- |\n");
    for (unsigned i = 0; i < serve_n_unused; i++)
        buf_printf(out, "| `%s` | %s |\n", serve_unused[i].name, serve_unused[i].why);
}
