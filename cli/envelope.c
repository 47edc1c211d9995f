// envelope.c: parses whole messages, to be pushed again.
#include "cli/envelope.h"

#include "cli/pick.h"

bool envelope_read(struct queen_message *m, span value, struct arena *a)
{
    span data = pick(value, "data");

    if (!data.ptr)
        data = pick(value, "payload");
    if (!data.ptr)
        return false;
    m->payload = data.ptr;
    m->payload_len = data.len;
    if (!m->partition)
        m->partition = pick_cstr(value, "partition", a);
    m->transaction_id = pick_cstr(value, "transactionId", a);
    m->trace_id = pick_cstr(value, "traceId", a);
    m->traceparent = pick_cstr(value, "traceparent", a);
    if (!m->correlation_id)
        m->correlation_id = pick_cstr(value, "correlationId", a);
    return true;
}
