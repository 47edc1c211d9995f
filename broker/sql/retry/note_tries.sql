-- queen.note_tries: record how often a consumer has tried a message before it settled it.
--
-- needs: find_message, messages_at, transaction_key
-- called by  queen.settle_tries, which holds the consumer
-- in         p_lane, p_key: where it was delivered; p_since: an outcome recorded before is of another acknowledgement;
--            p_tries: [{"agoMs": 21000, "error": "...", "errorCode": "..."}, ...], oldest first.  The age is counted
--            from now: the clocks of consumers differ
--            (or from the outcome, if one was recorded)
-- effects    the tries come before the outcome, and not before the delivery.  A message that was settled without a recorded outcome, because it is completed, gets the tries only
create or replace function queen.note_tries(p_lane bigint, p_group text, p_key uuid, p_since timestamptz, p_worker text, p_tries jsonb)
returns void
language plpgsql
as $$
declare
    v_lane    bigint := (select coalesce(l.origin, l.num) from queen.lanes l where l.num = p_lane);
    v_last    queen.attempts%rowtype;
    v_n       int := jsonb_array_length(p_tries);
    v_message queen.stored_message;
    v_now     timestamptz := clock_timestamp();
begin
    select * into v_last from queen.attempts a
     where a.lane = v_lane and a.key = p_key and a.grp = p_group order by a.nth desc limit 1;
    if v_last.message_id is null then
        select (m.message).* into v_message from queen.messages_at(p_lane, array[queen.find_message(p_lane, p_key)]) m;
        if v_message.message_id is null then -- deleted a moment ago
            return;
        end if;
        v_last.message_id := v_message.message_id;
        v_last.transaction_id := v_message.transaction_id;
        v_last.correlation_id := coalesce(v_message.meta::jsonb ->> 'correlationId', v_message.transaction_id);
        v_last.correlation := queen.transaction_key(v_last.correlation_id);
        v_last.nth := 1;
        v_last.attempt := 1;
    elsif v_last.at < p_since then -- it was settled before, and this acknowledgement has changed nothing
        return;
    else
        update queen.attempts a set nth = a.nth + v_n
         where a.message_id = v_last.message_id and a.grp = p_group and a.nth = v_last.nth;
    end if;
    insert into queen.attempts (message_id, grp, nth, attempt, outcome, lane, key, correlation, correlation_id, transaction_id, at,
                                max_attempts, error, error_code, worker)
    select v_last.message_id, p_group, v_last.nth + t.ord::int - 1, v_last.attempt, 't', v_lane, p_key, v_last.correlation,
           v_last.correlation_id, v_last.transaction_id,
           least(greatest(coalesce(v_last.at, v_now) - (t.try ->> 'agoMs')::bigint * interval '1 millisecond', v_last.delivered_at,
                          v_message.created_at), v_last.at),
           v_last.max_attempts, left(t.try ->> 'error', 4000), left(t.try ->> 'errorCode', 255), left(p_worker, 255)
      from jsonb_array_elements(p_tries) with ordinality t(try, ord);
end
$$;
