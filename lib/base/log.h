// log.h: one line per fact, on stderr.
//
//      log_info("pool.open", "conns=%u host=%s", n, host);
//
// Event name first, logfmt fields after it.  Text on a terminal, logfmt with a
// timestamp otherwise, JSON with a switch.  No payloads, no tokens, ever.
#ifndef QUEEN_BASE_LOG_H
#define QUEEN_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/span.h"

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_CRITICAL, LOG_OFF };
enum log_format { LOG_TEXT, LOG_JSON };

void log_setup(enum log_level level, enum log_format format); // before threads start
bool log_parse_level(span text, enum log_level *level);       // the names of LOG_LEVEL

// Logging never waits.  Lines for which a pipe, a socket or a terminal has no room are dropped
// and counted; the event log.dropped tells how many, with the next line that gets through.
uint64_t log_dropped(void);  // lines, since the start
void log_tell_dropped(void); // at once, if there are any and there is room now

extern enum log_level log_threshold; // read-only for everyone but log_setup()

// Whole line in one write().  fmt is a list of key=%d, key=%s, key=\"%s\" with single spaces
// between; words without '=' become the field "message".  The fields are found in fmt, so
// values may contain anything: they are quoted, escaped (\" \\ \n) and cut as needed.  In JSON
// a number or a boolean without quotes in fmt is one.
void log_line(enum log_level level, const char *event, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define log_at(level, event, ...)                    \
    do {                                             \
        if ((level) >= log_threshold)                \
            log_line((level), (event), __VA_ARGS__); \
    } while (0)
#define log_trace(event, ...)    log_at(LOG_TRACE, event, __VA_ARGS__)
#define log_debug(event, ...)    log_at(LOG_DEBUG, event, __VA_ARGS__)
#define log_info(event, ...)     log_at(LOG_INFO, event, __VA_ARGS__)
#define log_warn(event, ...)     log_at(LOG_WARN, event, __VA_ARGS__)
#define log_error(event, ...)    log_at(LOG_ERROR, event, __VA_ARGS__)
#define log_critical(event, ...) log_at(LOG_CRITICAL, event, __VA_ARGS__)

#endif
