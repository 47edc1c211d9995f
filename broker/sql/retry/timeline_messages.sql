-- queen.timeline_messages: the messages that a request for a timeline selects.
--
-- needs: find_message, last_seq_at, waiting_id, schedule_num, messages_at, timeline_takes
-- called by  queen.timeline
-- in         p_args: correlationId, transactionId or messageId; queue and partition limit all of them
-- out        seq: its sequence number in its lane; due_at: it is scheduled and has no sequence number yet; both null: it was removed and
--            only its history is left. At most c_most messages, and one more if there are more. Index probes only
-- raises     QN001 for a request that selects nothing, or too many partitions
create or replace function queen.timeline_messages(p_args jsonb)
returns table (lane bigint, seq bigint, message queen.stored_message, due_at timestamptz)
language plpgsql stable
as $$
#variable_conflict use_column
declare
    c_most  constant int := 10000;
    v_text  text;
    v_key   uuid;
    v_id    uuid;
    v_lanes bigint[];
    v_last  bigint;
    v_tail  bigint; -- the lower half of the id
begin
    if (p_args ? 'correlationId')::int + (p_args ? 'transactionId')::int + (p_args ? 'messageId')::int > 1 then
        raise exception using errcode = 'QN001', message = 'only one of correlationId, transactionId and messageId must be given';
    elsif p_args ? 'partition' and not p_args ? 'queue' then
        raise exception using errcode = 'QN001', message = 'partition needs its queue';
    end if;
    if p_args ? 'correlationId' then
        v_text := p_args ->> 'correlationId';
        v_key := queen.transaction_key(v_text);
        return query
        with found as materialized (
            select c.lane, c.seq from queen.correlations c
             where c.correlation = v_key and queen.timeline_takes(p_args, c.lane) limit c_most + 1
        ), failed as materialized ( -- seeded with the transaction id, or removed from the lane
            select a.lane, a.key, a.message_id, a.transaction_id from queen.attempts a
             where a.correlation = v_key and a.nth = 1 and a.correlation_id = v_text and queen.timeline_takes(p_args, a.lane) limit c_most + 1
        ), stored as materialized (
            select f.lane, m.seq, m.message
              from (select p.lane, array_agg(p.seq) as seqs
                      from (select f.lane, f.seq from found f
                             union
                            select f.lane, queen.find_message(f.lane, f.key) from failed f) p
                     where p.seq is not null group by p.lane) f
              cross join lateral queen.messages_at(f.lane, f.seqs) m
             where coalesce((m.message).meta::jsonb ->> 'correlationId', (m.message).transaction_id) = v_text
        )
        select s.lane, s.seq, s.message, null::timestamptz from stored s
         union all
        select f.lane, null, row(f.message_id, f.key, f.transaction_id, null, null, null,
                                 json_build_object('correlationId', v_text)::text, null, null)::queen.stored_message, null
          from failed f
         where not exists (select from stored s where (s.message).message_id = f.message_id)
         union all
       (select w.lane, null, row(w.id, w.key, coalesce(w.transaction_id, w.key::text), null, null, null,
                                 json_build_object('correlationId', v_text)::text, null, w.created_at)::queen.stored_message, w.due_at
          from queen.scheduled w where w.correlation_id = v_text and w.kind = 'p' and queen.timeline_takes(p_args, w.lane)
         order by w.due_at, w.num limit c_most + 1)
         limit c_most + 1;
        return;
    elsif p_args ? 'transactionId' then
        v_text := p_args ->> 'transactionId';
        v_key := queen.transaction_key(v_text);
        if p_args ? 'queue' then
            select array_agg(l.num) into v_lanes
              from (select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id
                     where q.name = p_args ->> 'queue' and (not p_args ? 'partition' or l.name = p_args ->> 'partition') limit c_most + 11) l;
        else
            select array_agg(l.num) into v_lanes from (select l.num from queen.lanes l limit c_most + 11) l;
        end if;
        if cardinality(v_lanes) > 1000 then
            raise exception using errcode = 'QN001', message = case when p_args ? 'queue'
                then 'the queue has more than 1000 partitions: name the partition'
                else 'there are more than 1000 partitions: name the queue of the transactionId' end;
        end if;
    elsif p_args ? 'messageId' then
        if p_args ->> 'messageId' !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
            raise exception using errcode = 'QN001', message = 'messageId must be a UUID';
        end if;
        v_id := p_args ->> 'messageId';
        v_tail := ('x' || right(replace(v_id::text, '-', ''), 16))::bit(64)::bigint;
        -- A derived id contains the position of the message (queen.message_id). Other ids are found in queen.attempts,
        -- queen.correlations and queen.scheduled.
        select a.lane, a.key into lane, v_key from queen.attempts a where a.message_id = v_id limit 1;
        if not found then
            select l.num, n.seq into lane, v_last
              from queen.lanes l
              cross join lateral (
                   select queen.last_seq_at(l.num, 'epoch'::timestamptz + (queen.key_time(v_id) * 1000
                              + ('x' || substr(replace(v_id::text, '-', ''), 14, 3))::bit(12)::int / 4) * interval '1 microsecond')) n(seq)
             where l.num = v_tail & ((1::bigint << 42) - 1) and l.origin is null;
            -- The probe found the last message of its segment. Compare the id to find the right one.
            return query
            select lane, m.seq, m.message, null::timestamptz
              from (select s.first_seq from queen.segments s
                     where s.lane = timeline_messages.lane and s.first_seq <= v_last order by s.first_seq desc limit 1) s
              cross join lateral queen.messages_at(lane, array[s.first_seq + ((v_tail >> 42) & ((1 << 20) - 1))]) m
             where (m.message).message_id = v_id;
            if found then
                return;
            end if;
            return query -- it was scheduled, and got its sequence number later
            select c.lane, m.seq, m.message, null::timestamptz
              from queen.correlations c
              cross join lateral queen.messages_at(c.lane, array[c.seq]) m
             where c.correlation = v_id and (m.message).message_id = v_id;
            if found then
                return;
            end if;
            return query
            select w.lane, null::bigint, row(w.id, w.key, coalesce(w.transaction_id, w.key::text), null, null, null,
                       case when w.correlation_id is not null then json_build_object('correlationId', w.correlation_id)::text end,
                       null, w.created_at)::queen.stored_message, w.due_at
              from queen.scheduled w where w.num = queen.schedule_num(v_id) and w.id = v_id and w.kind = 'p';
            return;
        end if;
        v_lanes := array[lane];
        select a.transaction_id into v_text from queen.attempts a where a.message_id = v_id limit 1;
    else
        raise exception using errcode = 'QN001', message = 'correlationId, transactionId or messageId is needed';
    end if;

    return query
    select u.lane, m.seq, m.message, null::timestamptz
      from unnest(v_lanes) u(lane)
      cross join lateral (select queen.find_message(u.lane, v_key)) f(seq)
      cross join lateral queen.messages_at(u.lane, array[f.seq]) m
     where f.seq is not null
     limit c_most + 1;
    if found then
        return;
    end if;
    return query -- it is scheduled, or only its history is left
    select w.lane, null::bigint, row(w.id, w.key, v_text, null, null, null,
               case when w.correlation_id is not null then json_build_object('correlationId', w.correlation_id)::text end,
               null, w.created_at)::queen.stored_message, w.due_at
      from unnest(v_lanes) u(lane)
      join queen.message_keys k on k.lane = u.lane and k.key = v_key and k.seq <= 0
      join queen.scheduled w on w.num = -k.seq and w.lane = u.lane and w.kind = 'p'
     union all
    select a.lane, null, row(a.message_id, a.key, a.transaction_id, null, null, null,
               json_build_object('correlationId', a.correlation_id)::text, null, null)::queen.stored_message, null
      from queen.attempts a
     where a.lane = any (v_lanes) and a.key = v_key and a.nth = 1
       and not exists (select from queen.message_keys k where k.lane = a.lane and k.key = v_key and k.seq <= 0)
     limit c_most + 1;
end
$$;
