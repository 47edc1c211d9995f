-- queen.fail_message: a delivery has failed: what becomes of the message, decided and done.
--
-- needs: retry_policy_of, retry_delay, retry_lane, schedule_retry, note_attempt, find_message, stored_id, 
--        add_dead_letter
-- called by  queen.settle, which holds the consumer
-- in         p_message at p_seq of p_lane; p_origin: the partition when that is a retry lane, else null; p_policy: the queue's
--            p_passed: the group has settled it before; p_final: no retry whatever the policy says; p_retry, p_retries: whether the
--            partition would deliver it again in order, and how often it has
-- out        outcome i: the partition is to deliver it again in order (nothing was changed but the history)
--                    r: attempt p_attempt + 1 waits until due_at, the group is done with it here
--                    d: it is a dead letter now, and the group is done with it here
--                    null: it was settled before, or its partition was deleted this moment: nothing is to be done
-- locks      none to wait for but a retry lane that is being made
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
    v_place       record;  -- where the message itself lies
begin
    if v_scheduled and p_passed then
        return;
    end if;
    if v_scheduled and v_policy ->> 'mode' is distinct from 'scheduled' then
        -- The policy was taken back while it waited: it goes on as it began.
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
        -- The letter refers to the message where it was pushed, if it is still there.
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
