-- queen.move_to_dlq: POST /api/v1/messages/:partitionId/:transactionId/dlq.
--
-- needs: locate_message, lock_lane, latest_state, start_cursor, dead_letter, add_skip, step_over, notify_lanes, forget_retries, messages_at, 
--        note_attempt, transaction_key
-- called by  broker/src/api/admin/actions.c
-- in         p_args.partitionId, p_args.transactionId; body.consumerGroup (none: queue mode), body.error
-- out        200 {"success","partitionId","transactionId","message"}, also if it already is a dead letter; 404: no such message
-- locks      as queen.lock_lane
-- effects    removes a retry of the group that waits, or is due and not consumed: the group has the dead letter and no delivery
-- raises     QN001 for a field that is not a string
create or replace function queen.move_to_dlq(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    m        record;
    c        record;
    v_group  text := coalesce(nullif(p_args -> 'body' ->> 'consumerGroup', ''), '__QUEUE_MODE__');
    v_name   text;
    v_cursor bigint;
    v_error  text := coalesce(nullif(p_args -> 'body' ->> 'error', ''), 'Moved by request');
    v_failed int; -- number of failed deliveries
begin
    foreach v_name in array array['consumerGroup', 'error'] loop
        if jsonb_typeof(p_args -> 'body' -> v_name) not in ('string', 'null') then
            raise exception using errcode = 'QN001', message = format('%s must be a string', v_name);
        end if;
    end loop;
    if length(v_group) > 255 then
        raise exception using errcode = 'QN001', message = 'consumerGroup is longer than 255 characters';
    end if;
    select * into m from queen.locate_message(p_args);
    if found then
        perform queen.lock_lane(m.lane);
        select * into m from queen.locate_message(p_args);
    end if;
    if m.seq is null then
        status := 404;
        answer := json_build_object('success', false, 'error', 'Message not found');
        return next;
        return;
    end if;

    if queen.forget_retries(m.lane, queen.transaction_key(p_args ->> 'transactionId'), array[v_group], false) > 0 then
        select coalesce(max(a.attempt), 1) into v_failed
          from queen.messages_at(m.lane, array[m.seq]) k
          join queen.attempts a on a.message_id = (k.message).message_id and a.grp = v_group;
        perform queen.note_attempt(k.message, v_group, m.lane, v_failed, 'd',
                                   coalesce((k.message).meta::jsonb ->> 'correlationId', (k.message).transaction_id), null,
                                   clock_timestamp(), null, null, v_error, null, null)
           from queen.messages_at(m.lane, array[m.seq]) k;
    end if;
    if not exists (select from queen.dead_letter_queue d
                    where d.lane = m.lane and d.seq = m.seq and d.consumer_group = v_group) then
        perform queen.dead_letter(m.lane, m.lane_id, m.seq, v_group, v_error, coalesce(v_failed - 1, 0));
        select st.cursor_seq, coalesce(st.lease_until > clock_timestamp(), false) as leased, st.* into c
          from queen.consumers k cross join lateral queen.latest_state(k.num) st
         where k.lane = m.lane and k.grp = v_group;
        v_cursor := coalesce(c.cursor_seq, queen.start_cursor(m.lane, v_group));
        if c.consumer is not null and c.taken_seq is null and not c.leased and v_cursor = m.seq - 1 then
            insert into queen.consumer_states
                   (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot, settled)
            select c.consumer, c.ver + 1, p.cursor_seq, c.total_messages, c.total_batches, c.last_at, r.active, p.settled
              from queen.rotation r cross join queen.past_settled(m.seq, c.settled) p;
        elsif v_cursor < m.seq then
            perform queen.add_skip(m.lane, v_group, m.seq);
            if queen.step_over(m.lane, m.seq, v_group) then
                perform queen.notify_lanes(0, array[m.lane]);
            end if;
        end if;
    end if;
    status := 200;
    answer := json_build_object('success', true, 'partitionId', m.lane_id, 'transactionId', p_args ->> 'transactionId',
                                'message', 'moved');
    return next;
end
$$;
