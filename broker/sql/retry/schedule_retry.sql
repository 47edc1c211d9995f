-- queen.schedule_retry: queen.schedule_retries for one dead letter that is sent again.
--
-- needs: schedule_retries, iso_ms
-- called by  queen.redrive_here
-- in         p_retry_lane: the lane that gets it when it is due; p_attempt: number of that delivery
-- out        false: its further fields would be longer than a message can carry, or its stored bytes are damaged
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
    perform queen.schedule_retries(p_retry_lane, p_group, array[p_message], array['r'::"char"], array[p_attempt - 1], array[p_due_at],
                                   array[p_correlation_id], array[v_meta]);
    return true;
end
$$;
