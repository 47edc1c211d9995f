// retry_policy.h: validates the retry policy that a client sends with a message.
//
// The rules are those of broker/sql/retry/check_retry_policy.sql, so that no message is stored
// with a policy that the database cannot apply.
#ifndef QUEEN_JSON_RETRY_POLICY_H
#define QUEEN_JSON_RETRY_POLICY_H

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

enum { RETRY_POLICY_BYTES = 16 * 1024 };

// raw: the value of retryPolicy, valid JSON. QE_BAD_PARAM: why names the invalid field.
MUST_USE int retry_policy_check(span raw, struct fault *why);

#endif
