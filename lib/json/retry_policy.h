// retry_policy.h: a message's own retry policy, as sent with it.
//
// Judged as broker/sql/retry/check_retry_policy.sql judges the same object, so that no message
// is stored whose failure nobody could decide about.
#ifndef QUEEN_JSON_RETRY_POLICY_H
#define QUEEN_JSON_RETRY_POLICY_H

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

enum { RETRY_POLICY_BYTES = 16 * 1024 };

// raw: the value of retryPolicy, of good grammar.  QE_BAD_PARAM: why says what is wrong.
MUST_USE int retry_policy_check(span raw, struct fault *why);

#endif
