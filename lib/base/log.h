// log.h: one line per event, on stderr.
//
//     log_info("pool.open", "conns=%u host=%s", n, host);
//
// The event name comes first, logfmt fields follow. Plain text on a terminal, logfmt with a
// timestamp otherwise, JSON if configured. Never log payloads or tokens.
#ifndef QUEEN_BASE_LOG_H
#define QUEEN_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/span.h"

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_CRITICAL, LOG_OFF };
enum log_format { LOG_TEXT, LOG_JSON };

void log_setup(enum log_level level, enum log_format format); // before threads start
bool log_parse_level(span text, enum log_level *level);       // accepts the values of LOG_LEVEL

// Logging never waits. Lines for which a pipe, a socket or a terminal has no room are dropped
// and counted. The event log.dropped reports the count, together with the next line that is
// written.
uint64_t log_dropped(void); // lines, since the start
// Writes log.dropped now, if lines were dropped and there is room.
void log_report_dropped(void);

extern enum log_level log_threshold; // written only by log_setup()

// Writes the whole line in one write(). fmt is a list of key=%d, key=%s, key=\"%s\" separated
// by single spaces; words without '=' become the field "message". The fields are found in fmt,
// so values may contain anything: they are quoted, escaped (\" \\ \n) and cut as needed. In
// JSON, an unquoted number or boolean in fmt stays a number or boolean.
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
