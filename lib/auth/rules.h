// rules.h: what an identity may do with which queues.
//
//     push:orders.*                       rule: operations, ':' and names
//     push+pop:orders.*                   several operations
//     pop:queue=orders.*;group=billing    conditions, all of which must hold
//     read:namespace=shop                 the part of the queue's name before the first dot
//     read+push:tenant=acme               of the platform: this tenant, no queue
//     *:orders                            every operation except admin
//     admin                               everything
//
// In a name `*` stands for any run of characters, also none. `%2A` is a star, and %XX any other
// byte that has a meaning here (, ; : = + %). Names are compared byte by byte: case matters.
//
// An identity with rules may do what one of its rules permits, and nothing else. Namespace and
// task of a rule are parts of the queue's name, never the labels that configure sets: otherwise
// who may configure a queue could widen a permission.
#ifndef QUEEN_AUTH_RULES_H
#define QUEEN_AUTH_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

enum access_op {
    MAY_PUSH = 1,
    MAY_POP = 2,  // also acknowledge, extend leases, seek, own partitions
    MAY_READ = 4, // lists, reports, messages; payloads of encrypted queues only with the next
    MAY_READ_ENCRYPTED = 8,
    MAY_CONFIGURE = 16,         // queues and recurring messages; encryption and retention ...
    MAY_CONFIGURE_STORAGE = 32, // ... only with this
    MAY_DELETE = 64,            // messages, queues, groups
    MAY_ADMIN = 128,            // everything
};

struct access_rules;

// A list of rules separated by commas. Refuses text that is no rule, with the rule in f.
MUST_USE int access_rules_parse(span text, struct access_rules **out, struct fault *f);
struct access_rules *access_rules_ref(struct access_rules *r); // r may be NULL; any thread
void access_rules_unref(struct access_rules *r);               // likewise
// The text that it was made from; equal texts give equal answers.
span access_rules_text(const struct access_rules *r);

// The group of an operation that changes what every group gets: no name has a NUL, so only a
// rule without a condition on groups permits it.
#define ACCESS_ALL_GROUPS ((span){"", 1})

// group: SPAN_NONE: the operation concerns no group.
bool access_rules_permit(const struct access_rules *r, unsigned op, span queue, span group);
bool access_rules_permit_all(const struct access_rules *r, unsigned op);  // for every queue
bool access_rules_permit_some(const struct access_rules *r, unsigned op); // for some queue

bool access_rules_permit_some_tenant(const struct access_rules *r, unsigned op);
bool access_rules_permit_tenant(const struct access_rules *r, unsigned op, span tenant);

// The patterns of queue names as a JSON array, for SQL: LIKE patterns with '\' as escape.
struct buf;
void access_rules_put_patterns(const struct access_rules *r, unsigned op, struct buf *out);

// pattern: '\0' stands for any run of characters. In linear time.
bool access_pattern_matches(span pattern, span name);

#endif
