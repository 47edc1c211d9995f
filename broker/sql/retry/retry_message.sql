-- queen.retry_message: POST /api/v1/messages/:partitionId/:transactionId/retry.
--
-- needs: locate_message, lock_lane, forget_retries, remove_message, push_segments, pack_message, unpack_segment, add_skip, key_time
-- called by  broker/src/api/admin/actions.c
-- in         p_args.partitionId, p_args.transactionId
-- out        200: the message was moved to the end of its partition, {"success","partitionId","transactionId","messageId","message"};
--            404: not found, or not a dead letter of any group; 409: the stored bytes are damaged;
--            429: the queue is full (maxSize)
-- locks      as queen.lock_lane
--
-- Payload, trace id, producer and transaction id stay. The id is new, because ids rise within a partition. The message is delivered to
-- groups that dead-lettered it and to groups that have not reached it yet. It is not delivered to groups that have consumed it. A group
-- whose retry is waiting receives that retry, with the old id.
create or replace function queen.retry_message(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    m        record;
    v_msg    record;
    v_key    uuid := queen.transaction_key(p_args ->> 'transactionId');
    v_done   text[]; -- groups that have consumed it
    v_stored record;
begin
    select * into m from queen.locate_message(p_args);
    if found then
        perform queen.lock_lane(m.lane);
        select * into m from queen.locate_message(p_args);
    end if;
    if m.seq is null
       or not exists (select from queen.dead_letter_queue d where d.lane = m.lane and d.seq = m.seq) then
        status := 404;
        answer := json_build_object('success', false, 'error', 'Message not found');
        return next;
        return;
    end if;

    select u.* into v_msg
      from (select * from queen.segments s
             where s.lane = m.lane and s.first_seq <= m.seq order by s.first_seq desc limit 1) s
      cross join lateral queen.unpack_segment(s.lane, s.created_at, s.count, s.keys, s.body) u
     where u.pos = m.seq - s.first_seq;
    if v_msg.payload is null then
        status := 409;
        answer := json_build_object('success', false, 'error', 'the stored message is damaged and cannot be delivered again');
        return next;
        return;
    end if;
    select array_agg(c.grp) into v_done
      from queen.consumers c
      cross join lateral queen.latest_state(c.num) st
     where c.lane = m.lane and st.cursor_seq >= m.seq
       and not exists (select from queen.dead_letter_queue d
                        where d.lane = m.lane and d.seq = m.seq and d.consumer_group = c.grp);
    begin
        perform queen.forget_retries(m.lane, v_key,
                                     array(select d.consumer_group::text from queen.dead_letter_queue d
                                            where d.lane = m.lane and d.seq = m.seq), true);
        perform queen.remove_message(m.lane, m.seq);
        select p.* into v_stored
          from queen.push_segments(
               0, true, 1, array[m.lane], array[0::bigint], array[0], array[0::bigint], array[1],
               array[queen.key_time(v_key)], array[queen.key_time(v_key)], array[uuid_send(v_key)],
               array['\x01'::bytea || queen.pack_message(nullif(v_msg.transaction_id, v_key::text), v_msg.trace_id,
                                                         v_msg.producer_sub, v_msg.is_encrypted, null, v_msg.meta, v_msg.payload)],
               case when queen.key_time(v_key) is null then array[1] else array[]::int[] end,
               case when queen.key_time(v_key) is null then array[0] else array[]::int[] end,
               case when queen.key_time(v_key) is null then array[v_key] else array[]::uuid[] end) p;
        if v_stored.status <> 0 then
            raise exception 'rolled back' using errcode = 'QN010';
        end if;
    exception when sqlstate 'QN010' then
        status := 429;
        answer := json_build_object('success', false, 'error', format('queue "%s" is full',
                      (select q.name from queen.lanes l join queen.queues q on q.id = l.queue_id where l.num = m.lane)));
        return next;
        return;
    end;
    perform queen.add_skip(m.lane, g.name, v_stored.first_seq) from unnest(v_done) g(name);
    perform queen.step_over(m.lane, v_stored.first_seq, g.name) from unnest(v_done) g(name);

    status := 200;
    answer := json_build_object('success', true, 'partitionId', m.lane_id, 'transactionId', p_args ->> 'transactionId',
                                'messageId', queen.message_id(v_stored.created_at, 0, m.lane), 'message', 'requeued');
    return next;
end
$$;
