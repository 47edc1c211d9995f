// pooler.c: settings per transaction, and recognising a transaction pooler.
#include "pg/pooler_int.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/span.h"

// Names are qualified: the settings that this statement makes do not hold for itself. The
// division is not computed before execution, because its operand is not constant.
static const char guard[] =
    "1 operator(pg_catalog./) (case when pg_catalog.pg_postmaster_start_time() "
    "operator(pg_catalog.=) $1::pg_catalog.timestamptz and ($2::pg_catalog.timestamptz is null "
    "or pg_catalog.pg_stat_get_bgwriter_stat_reset_time() operator(pg_catalog.=) $2) "
    "then 1 else 0 end)";

// E'...', whatever standard_conforming_strings is.
static void put_literal(struct buf *b, span text)
{
    buf_put_lit(b, "E'");
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'' || text.ptr[i] == '\\')
            buf_putc(b, '\\');
        buf_putc(b, text.ptr[i]);
    }
    buf_putc(b, '\'');
}

// Takes the next word; a backslash protects the character that follows it.
static bool next_word(const char **rest, struct buf *word)
{
    const char *s = *rest + strspn(*rest, " \t\n");

    word->len = 0;
    if (*s == '\0')
        return false;
    for (; *s != '\0' && strchr(" \t\n", *s) == NULL; s++) {
        if (*s == '\\' && s[1] != '\0')
            s++;
        buf_putc(word, *s);
    }
    *rest = s;
    return true;
}

static void put_setting(struct buf *b, span name, span value, char **isolation)
{
    // Only counts while PostgreSQL waits for the next command of a transaction, and a call is
    // sent as a whole.
    if (span_eq(name, SPAN("idle_in_transaction_session_timeout")))
        return;
    if (span_eq(name, SPAN("default_transaction_isolation"))) {
        free(*isolation);
        *isolation = mem_strndup(value.ptr, value.len);
        // Fails unless it is the current value: see send_settings() in conn.c.
        name = SPAN("transaction_isolation");
    }
    buf_put_lit(b, "pg_catalog.set_config(");
    put_literal(b, name);
    buf_put_lit(b, ", ");
    put_literal(b, value);
    buf_put_lit(b, ", true), ");
}

void pooler_put_settings(struct buf *b, const char *options, char **isolation)
{
    const char *rest = options != NULL ? options : "";
    struct buf word = {0};

    *isolation = NULL;
    buf_put_lit(b, "select ");
    while (next_word(&rest, &word)) {
        span text = buf_span(&word);
        if (span_eq(text, SPAN("-c")))
            continue;
        const char *at = text.len > 0 ? memchr(text.ptr, '=', text.len) : NULL;
        if (at == NULL || text.ptr[0] == '-') {
            log_warn("pg.option_ignored", "option=\"" SPAN_FMT "\" why=\"behind a pooler\"",
                     SPAN_ARG(text));
            continue;
        }
        size_t n = (size_t)(at - text.ptr);
        put_setting(b, (span){text.ptr, n}, (span){at + 1, text.len - n - 1}, isolation);
    }
    buf_put(b, span_of(guard));
    buf_putc(b, '\0');
    buf_free(&word);
    if (b->failed)
        BUG("no memory for the settings of a connection");
}

bool pooler_refused(const char *why)
{
    return strstr(why, "unsupported startup parameter") != NULL;
}

void pooler_log(const char *why)
{
    static atomic_bool logged;

    if (!atomic_exchange(&logged, true))
        log_info("pg.pooler_detected", "mode=transaction why=\"%s\"", why);
}
