// template.h: the payload of a campaign's messages: JSON with {{names}} in its strings.
//
//       {"to": "{{email}}", "text": "Dear {{first_name}}, ..."}
//
// Each name is replaced by its value, escaped, so that the result is always valid JSON.  A
// missing value becomes the empty string.
#ifndef QUEEN_AUDIENCE_TEMPLATE_H
#define QUEEN_AUDIENCE_TEMPLATE_H

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum template_name {
    NAME_CUSTOMER, // the UUID
    NAME_FIRST_NAME,
    NAME_LAST_NAME,
    NAME_EMAIL,
    NAME_PHONE,
    NAME_LANGUAGE,
    NAME_CITY,
    NAME_COUNTRY,
    NAME_TENANT,
    NAME_CAMPAIGN,
    NAME_RUN,
    TEMPLATE_NAMES
};

// text is valid JSON.  Returns 0, or f names the unknown name or reports one outside of a
// string.
MUST_USE int template_check(span text, struct fault *f);
// text must have passed template_check().
void template_put(struct buf *out, span text, const span values[TEMPLATE_NAMES]);

#endif
