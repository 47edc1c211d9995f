-- queen.fail_messages: decide about messages whose delivery has failed, and carry it out.
--
-- needs: retry_policy_of, fill_retry_policy, retry_delay, retry_lane, schedule_retries, note_attempts, find_message, stored_id,
--        messages_at, add_dead_letters
-- called by  queen.settle, queen.advance, queen.end_deliveries, which hold the consumer
-- in         p_origin: the partition if p_lane is a retry lane, else null; p_policy: the queue's; p_retry, p_retries: whether the
--            partition would deliver them again in order, and how often it has.  One element per message, in order of p_seq:
--            p_id: a number of the caller; p_seq: its place in p_lane; p_final: no retry whatever the policy; error text and code, worker
-- out        one row per message that is still there:
--            outcome i: the partition must deliver it again in order (only the history was changed)
--                    r: attempt p_attempt + 1 waits until due_at, and the group has passed it here
--                    d: it is a dead letter, and the group has passed it here
--            No row: the message or its partition was deleted a moment ago
-- locks      only a retry lane that is being made
--
-- The messages are handled in portions, so that memory is bounded.
create or replace function queen.fail_messages(
    p_lane bigint, p_origin bigint, p_group text, p_policy jsonb, p_retry boolean, p_retries int,
    p_delivered_at timestamptz, p_now timestamptz,
    p_id int[], p_seq bigint[], p_final boolean[], p_error text[], p_code text[], p_worker text[])
returns table (id int, outcome "char", attempt int, due_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    c_portion constant int := 200;
    v_plain   jsonb := queen.retry_policy_of(p_policy, null); -- of a message without a policy or type of its own
    v_message queen.stored_message[];
    v_seq     bigint[]; -- of these arrays: one element per message of the portion
    v_at      int[];    -- places in the four arrays of the portion below
    v_final   boolean[];
    v_error   text[];
    v_code    text[];
    v_worker  text[];
    v_outcome "char"[];
    v_attempt int[];
    v_nth     int[];    -- rows of history that it has
    v_due     timestamptz[];
    v_corr    text[];
    v_most    int[];
    v_meta    text[];   -- further fields of the retry
    v_again   boolean[]; -- by schedule, whatever comes of this failure
    v_retries bigint;   -- the retry lane
    v_place   record;   -- the partition
    v_from    int;      -- the portion: places in p_id
    v_to      int := 0;
    v_end     bigint;   -- of the last segment of the portion
    i         int;
begin
    if p_origin is not null and v_plain ->> 'mode' is distinct from 'scheduled' then
        -- The policy was removed while a retry waited: that one continues as it began.
        v_plain := queen.fill_retry_policy(coalesce(v_plain, '{}') || '{"mode":"scheduled"}');
    end if;
    select o.num, o.id into v_place
      from queen.lanes l join queen.lanes o on o.num = coalesce(l.origin, l.num) where l.num = p_lane;
    if v_place.num is null then -- deleting a queue does not wait for consumers
        return;
    end if;
    while v_to < cardinality(p_seq) loop
        v_from := v_to + 1;
        v_to := least(v_from + c_portion - 1, cardinality(p_seq));
        -- With the rest of its last segment, so that no segment is unpacked twice.
        select s.first_seq + s.count into v_end from queen.segments s
         where s.lane = p_lane and s.first_seq <= p_seq[v_to] order by s.first_seq desc limit 1;
        while p_seq[v_to + 1] < v_end loop
            v_to := v_to + 1;
        end loop;
        select array_agg(m.seq order by m.seq), array_agg(m.message order by m.seq) into v_seq, v_message
          from queen.messages_at(p_lane, p_seq[v_from : v_to]) m;
        continue when v_seq is null;
        -- Of the portion alone: an array of texts is searched from its beginning for each subscript.
        v_final := p_final[v_from : v_to];
        v_error := p_error[v_from : v_to];
        v_code := p_code[v_from : v_to];
        v_worker := p_worker[v_from : v_to];
        i := v_from;
        v_at := '{}';
        for k in 1 .. cardinality(v_seq) loop
            while p_seq[i] < v_seq[k] loop
                i := i + 1;
            end loop;
            v_at := v_at || i - v_from + 1;
        end loop;

        select array_agg(f.outcome), array_agg(f.attempt), array_agg(f.nth),
               array_agg(case when f.outcome = 'r'
                              then p_now + queen.retry_delay(f.policy, f.attempt, random()) * interval '1 second' end),
               array_agg(f.correlation_id), array_agg((f.policy ->> 'maxAttempts')::int),
               array_agg(f.retry_meta), array_agg(f.scheduled)
          into v_outcome, v_attempt, v_nth, v_due, v_corr, v_most, v_meta, v_again
          -- A retry needs room for its further fields, and a message that can be read.
          from (select d.*, case when d.fate = 'r' and (octet_length(d.retry_meta) > 65535 or not d.readable) then 'd'
                                 else d.fate end::"char" as outcome
                  from (select a.ord, a.policy, a.attempt, a.nth, a.correlation_id, a.scheduled, a.readable, o.fate,
                               case when o.fate = 'r' then (coalesce(a.meta, '{}') || jsonb_build_object(
                                        'attempt', a.attempt + 1, 'correlationId', a.correlation_id,
                                        'firstFailedAt', coalesce(a.meta ->> 'firstFailedAt', queen.iso_ms(p_now)),
                                        'lastError', left(a.error, 1000)))::text end as retry_meta
                          from (select u.ord, p.meta, p.policy, u.payload is not null as readable,
                                       coalesce(p.meta ->> 'correlationId', u.transaction_id) as correlation_id,
                                       p_origin is not null or (p.policy ->> 'mode') is not distinct from 'scheduled' as scheduled,
                                       coalesce(case when p_origin is not null then (p.meta ->> 'attempt')::int
                                                     when last.outcome = 'i' then last.attempt + 1 end, 1) as attempt,
                                       coalesce(last.nth, 0) as nth, e.error, e.final, e.code
                                  from unnest(v_message) with ordinality
                                       u(message_id, key, transaction_id, trace_id, producer_sub, is_encrypted, meta_text, payload, created_at, ord)
                                  cross join lateral (select v_error[v_at[u.ord]] as error, v_final[v_at[u.ord]] as final,
                                                             v_code[v_at[u.ord]] as code) e
                                  cross join lateral (select u.meta_text::jsonb as meta) t
                                  cross join lateral (
                                       select t.meta, case when (t.meta ?| array['retryPolicy', 'eventType', 'cloudEvent']) is not true then v_plain
                                                           when p_origin is null then queen.retry_policy_of(p_policy, t.meta)
                                                           else queen.fill_retry_policy(queen.retry_policy_of(p_policy, t.meta)
                                                                                        || '{"mode":"scheduled"}') end as policy) p
                                  left join lateral (select a.nth, a.outcome, a.attempt from queen.attempts a
                                                      where a.message_id = u.message_id and a.grp = p_group
                                                      order by a.nth desc limit 1) last on true) a
                          cross join lateral (
                               select case when a.final or (a.policy -> 'nonRetryable' ? a.code) is true then 'd'
                                           when a.scheduled then case when a.attempt < (a.policy ->> 'maxAttempts')::int then 'r' else 'd' end
                                           when p_retry then 'i'
                                           else 'd' end::"char" as fate) o) d
                 order by d.ord) f;

        if 'r' = any (v_outcome) then
            if v_retries is null then
                v_retries := case when p_origin is null then queen.retry_lane(p_lane, p_group) else p_lane end;
            end if;
            if v_retries is null then -- as above
                return;
            end if;
            perform queen.schedule_retries(v_retries, p_group, v_message, v_outcome, v_attempt, v_due, v_corr, v_meta);
        end if;
        if 'd' = any (v_outcome) then
            -- The letter refers to the message where it was pushed, if it is still there.
            perform queen.add_dead_letters(
                        array_agg(d.message_id), array_agg(v_place.id),
                        array_agg(case when d.found then v_place.num else p_lane end),
                        array_agg(case when d.found then d.place else d.seq end), p_group, array_agg(v_error[v_at[d.ord]]),
                        array_agg(case when v_again[d.ord] then v_attempt[d.ord] - 1 else p_retries end))
               from (select u.message_id, u.ord, v_seq[u.ord] as seq, k.place,
                            coalesce(p_origin is null or queen.stored_id(p_origin, k.place) = u.message_id, false) as found
                       from unnest(v_message) with ordinality
                            u(message_id, key, transaction_id, trace_id, producer_sub, is_encrypted, meta, payload, created_at, ord)
                       cross join lateral (select case when p_origin is null then v_seq[u.ord]
                                                       else queen.find_message(p_origin, u.key) end) k(place)
                      where v_outcome[u.ord] = 'd') d;
        end if;
        perform queen.note_attempts(v_message, p_group, coalesce(p_origin, p_lane), v_nth, v_attempt, v_outcome, v_corr, p_delivered_at,
                                    p_now, v_due, v_most, array(select v_error[a] from unnest(v_at) a),
                                    array(select v_code[a] from unnest(v_at) a), array(select v_worker[a] from unnest(v_at) a));
        return query
        select p_id[v_from - 1 + a.at], a.outcome, a.attempt, a.due_at from unnest(v_at, v_outcome, v_attempt, v_due) a(at, outcome, attempt, due_at);
    end loop;
end
$$;
