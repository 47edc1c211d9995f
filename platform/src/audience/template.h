// template.h: the payload of a campaign's messages: JSON with {{names}} in its texts.
//
//      {"to": "{{email}}", "text": "Dear {{first_name}}, ..."}
//
// A value takes the place of its name inside the text, escaped, so the result is JSON whatever
// the value is.  What a customer has not becomes nothing.
#ifndef QUEEN_AUDIENCE_TEMPLATE_H
#define QUEEN_AUDIENCE_TEMPLATE_H

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum template_name {
    NAME_CUSTOMER, // the uuid
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

// text is valid JSON.  0, or f says which name there is not, or that one is outside of a text.
MUST_USE int template_check(span text, struct fault *f);
// Of one that was checked.
void template_put(struct buf *out, span text, const span values[TEMPLATE_NAMES]);

#endif
