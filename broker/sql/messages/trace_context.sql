-- queen.trace_context: the trace context of a message, as it is stored.
--
-- called by  queen.read_items; broker/src/api/trace_context.c writes the same
-- in         p_traceparent, p_tracestate: as in the W3C recommendation; null and '' mean none
-- out        JSON object, or null if there is no traceparent, because a tracestate alone has no meaning
-- raises     QN001 for an invalid one
create or replace function queen.trace_context(p_traceparent text, p_tracestate text)
returns text
language plpgsql immutable
as $$
begin
    if coalesce(p_traceparent, '') = '' then
        return null;
    end if;
    if p_traceparent !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?$'
       or p_traceparent ~ '^(ff|..-0{32}|..-[0-9a-f]{32}-0{16})' or length(p_traceparent) > 255
       or (left(p_traceparent, 2) = '00' and length(p_traceparent) > 55) then
        raise exception 'traceparent is not one of W3C Trace Context' using errcode = 'QN001';
    end if;
    if length(p_tracestate) > 512 or p_tracestate !~ '^[ -~]*$' then
        raise exception 'tracestate must be at most 512 printable characters' using errcode = 'QN001';
    end if;
    return jsonb_strip_nulls(jsonb_build_object('traceparent', p_traceparent, 'tracestate', nullif(p_tracestate, '')))::text;
end
$$;
