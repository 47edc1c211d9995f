-- queen.schedule_retry: schedule another delivery of a message to one group.
--
-- needs: pack_message, schedule_rows
-- called by  queen.fail_message, queen.redrive_here; in the transaction that settles the failure
-- in         p_retry_lane: the lane it is appended to when due (queen.retry_lane); p_attempt: the number of that attempt
-- out        false: its further fields would become longer than a message can carry, or its stored bytes are damaged
--
-- A copy of the message waits, with the same payload, id and transaction id. Sealed payloads stay sealed. Information about the attempt
-- is added as further fields (docs/internals/segment-format.md).
create or replace function queen.schedule_retry(
    p_message queen.stored_message, p_retry_lane bigint, p_group text, p_attempt int, p_due_at timestamptz,
    p_correlation_id text, p_first_failed_at timestamptz, p_error text)
returns boolean
language plpgsql
as $$
declare
    v_meta text := (coalesce(p_message.meta::jsonb, '{}') || jsonb_build_object(
                        'attempt', p_attempt, 'correlationId', p_correlation_id,
                        'firstFailedAt', coalesce(p_message.meta::jsonb ->> 'firstFailedAt', queen.iso_ms(p_first_failed_at)),
                        'lastError', left(p_error, 1000)))::text;
begin
    if octet_length(v_meta) > 65535 or p_message.payload is null then
        return false;
    end if;
    perform queen.schedule_rows(
        'r', array[p_retry_lane], array[p_message.key], array[p_due_at], array[p_group], array[p_attempt],
        array[p_correlation_id], array[p_message.transaction_id], null,
        array[queen.pack_message(nullif(p_message.transaction_id, p_message.key::text), p_message.trace_id,
                                   p_message.producer_sub, p_message.is_encrypted, p_message.message_id, v_meta,
                                   p_message.payload)]);
    return true;
end
$$;
