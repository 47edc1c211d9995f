-- queen.fail_message: decide what happens to a message whose delivery failed, and do it.
--
-- needs: retry_policy_of, retry_delay, retry_lane, schedule_retry, note_attempt, find_message, stored_id, 
--        add_dead_letter
-- called by  queen.settle and queen.advance, which have locked the consumer
-- in         p_message at p_seq of p_lane; p_origin: the partition if the lane is a retry lane, else null; p_policy: of the queue;
--            p_passed: the group has settled it before; p_final: do not retry, whatever the policy; p_retry: the partition may
--            deliver it again in order; p_retries: how often it has done so
-- out        outcome i: the partition must deliver it again in order (only the history was changed)
--                    r: the next attempt waits until due_at, and the group passes the message here
--                    d: it is a dead letter now, and the group passes the message here
--                    null: it was settled before, or its partition was deleted meanwhile: nothing to do
-- locks      waits only for a retry lane that is being created
create or replace function queen.fail_message(
    p_message queen.stored_message, p_lane bigint, p_origin bigint, p_seq bigint, p_group text, p_policy jsonb,
    p_passed boolean, p_final boolean, p_retry boolean, p_retries int,
    p_delivered_at timestamptz, p_now timestamptz, p_error text, p_error_code text, p_worker text,
    out outcome "char", out attempt int, out due_at timestamptz)
language plpgsql
as $$
declare
    v_meta        jsonb := p_message.meta;
    v_policy      jsonb := queen.retry_policy_of(p_policy, v_meta);
    v_scheduled   boolean := p_origin is not null or v_policy ->> 'mode' is not distinct from 'scheduled';
    v_correlation text := coalesce(v_meta ->> 'correlationId', p_message.transaction_id);
    v_most        int;
    v_retries     bigint;  -- the retry lane
    v_place       record;  -- lane and sequence number of the original message
begin
    if v_scheduled and p_passed then
        return;
    end if;
    if v_scheduled and v_policy ->> 'mode' is distinct from 'scheduled' then
        -- The policy was removed while the message waited. Continue in the mode in which the retries began.
        v_policy := queen.fill_retry_policy(coalesce(v_policy, '{}') || '{"mode":"scheduled"}');
    end if;
    v_most := v_policy ->> 'maxAttempts';
    if p_origin is not null then
        attempt := coalesce((v_meta ->> 'attempt')::int, 1);
    else
        select case when a.outcome = 'i' then a.attempt + 1 else 1 end into attempt
          from queen.attempts a where a.message_id = p_message.message_id and a.grp = p_group
         order by a.nth desc limit 1;
        attempt := coalesce(attempt, 1);
    end if;
    outcome := case when p_final or v_policy -> 'nonRetryable' ? p_error_code then 'd'
                    when v_scheduled then case when attempt < v_most then 'r' else 'd' end
                    when p_retry then 'i'
                    else 'd' end;

    if outcome = 'r' then
        due_at := p_now + queen.retry_delay(v_policy, attempt, random()) * interval '1 second';
        v_retries := case when p_origin is null then queen.retry_lane(p_lane, p_group) else p_lane end;
        if v_retries is null then -- deleting a queue does not wait for consumers
            outcome := null; attempt := null; due_at := null;
            return;
        end if;
        if not queen.schedule_retry(p_message, v_retries, p_group, attempt + 1, due_at, v_correlation, p_now, p_error) then
            outcome := 'd';
            due_at := null;
        end if;
    end if;
    if outcome = 'd' then
        -- The dead letter refers to the original message if it is still stored.
        select o.num, o.id, case when l.num = o.num then p_seq else queen.find_message(o.num, p_message.key) end as seq
          into v_place
          from queen.lanes l join queen.lanes o on o.num = coalesce(l.origin, l.num) where l.num = p_lane;
        if v_place.num is null then -- as above
            outcome := null; attempt := null;
            return;
        end if;
        if p_origin is not null and queen.stored_id(v_place.num, v_place.seq) is distinct from p_message.message_id then
            v_place.num := p_lane;
            v_place.seq := p_seq;
        end if;
        perform queen.add_dead_letter(p_message.message_id, v_place.id, v_place.num, v_place.seq, p_group, p_error,
                                      case when v_scheduled then attempt - 1 else p_retries end);
    end if;
    perform queen.note_attempt(p_message, p_group, coalesce(p_origin, p_lane), attempt, outcome, v_correlation, p_delivered_at,
                               p_now, due_at, v_most, p_error, p_error_code, p_worker);
end
$$;
