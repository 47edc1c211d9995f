// retry_policy.h: a message's own retry policy, as sent with it.
//
// Judged as sql/procs/check_retry_policy.sql judges the same object, so that no message is
// stored whose failure nobody could decide about.
#ifndef QUEEN_API_RETRY_POLICY_H
#define QUEEN_API_RETRY_POLICY_H

#include "base/span.h"

struct body;

enum { RETRY_POLICY_BYTES = 16 * 1024 };

// raw: the value of the item's retryPolicy.  A mistake ends the reading of the body.
void retry_policy_check(struct body *b, span raw);

#endif
