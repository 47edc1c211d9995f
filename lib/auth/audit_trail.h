// audit_trail.h: records of administrative actions and of refused requests, until they are
// stored.
//
// A successful action is one record. Failed and denied requests change nothing and cost their
// sender nothing, so they are counted: the first one of a sender, route and status is recorded
// at once, and one more record has the number that followed within AUDIT_WINDOW_US. The number
// of open windows is limited, also per sender; what exceeds it is counted in one common record.
// So a flood of refused requests makes at most 2 * AUDIT_WINDOWS + 1 records per window.
//
// Not thread-safe: one per loop. Time is a parameter.
#ifndef QUEEN_AUTH_AUDIT_TRAIL_H
#define QUEEN_AUTH_AUDIT_TRAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/span.h"

enum {
    AUDIT_WINDOW_US = 60 * 1000 * 1000,
    AUDIT_WINDOWS = 128,
    AUDIT_WINDOWS_PER_SENDER = 32,
    AUDIT_MAX_RECORDS = 5000, // not yet stored; further ones are lost
    AUDIT_TEXT = 255,         // of one field; longer ones are cut
    AUDIT_DETAIL = 1000,
};

enum audit_field {
    AUDIT_SUBJECT,
    AUDIT_OP,
    AUDIT_METHOD,
    AUDIT_PATH,
    AUDIT_TARGET,
    AUDIT_FIELDS
};

// One request. Texts are copied, cut and made valid UTF-8.
struct audit_entry {
    span text[AUDIT_FIELDS];
    span detail;     // JSON object of at most AUDIT_DETAIL bytes; SPAN_NONE: none
    uint8_t ip[16];  // as http_req_ip()
    const void *key; // of the route; NULL: none
    int status;
};

struct audit_record {
    STAILQ_ENTRY(audit_record) link;
    uint8_t id[16]; // a repeated insertion is recognized by it
    int64_t at_us;  // since 1970
    uint64_t count; // of equal requests
    int status;
    uint8_t ip[16];
    char *text[AUDIT_FIELDS]; // "": none
    char *detail;             // "": none
};
STAILQ_HEAD(audit_records, audit_record);

struct audit_trail;

struct audit_trail *audit_trail_new(void);
void audit_trail_free(struct audit_trail *t); // t may be NULL

// True: the request is the first of its kind in a window, so that it is worth a log line.
bool audit_trail_add(struct audit_trail *t, const struct audit_entry *e, uint64_t now_us,
                     int64_t wall_us);
// Ends windows that are over and records their counts. all: every window. Calls report, if it
// is not NULL, for each of these records.
void audit_trail_sweep(struct audit_trail *t, uint64_t now_us, int64_t wall_us, bool all,
                       void (*report)(const struct audit_record *r));
bool audit_trail_is_idle(const struct audit_trail *t); // no record and no window

// Moves up to n of the oldest records to the end of `to`.
unsigned audit_trail_take(struct audit_trail *t, struct audit_records *to, unsigned n);
// They could not be stored and are the oldest again.
void audit_trail_return(struct audit_trail *t, struct audit_records *from);
void audit_records_free(struct audit_records *r);
uint64_t audit_trail_lost(const struct audit_trail *t);

// "203.0.113.7" or "2001:db8::1"; "" if it is unknown.
enum { AUDIT_IP_TEXT = 46 };
void audit_format_ip(const uint8_t ip[16], char out[AUDIT_IP_TEXT]);

#endif
