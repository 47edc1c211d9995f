-- queen.cancel_retries: cancel waiting retries and store their messages as dead letters.
--
-- needs: unpack_segment, find_message, stored_id, note_attempt, add_dead_letter
-- called by  queen.cancel_scheduled
-- in         one element per retry: its retry lane, key, group, the number of the attempt, and the packed message
--
-- The messages can still be read and redriven. A message that is no longer in its partition gets no dead letter, because a dead
-- letter refers to a position there. Only its history remains.
create or replace function queen.cancel_retries(p_lane bigint[], p_key uuid[], p_group text[], p_attempt int[], p_message bytea[])
returns void
language plpgsql
as $$
declare
    r     record;
    v_seq bigint;
begin
    for r in
        select l.num as lane, l.id as lane_id, u.grp, u.attempt,
               row(m.message_id, u.key, m.transaction_id, m.trace_id, m.producer_sub, m.is_encrypted, m.meta, m.payload, null)::queen.stored_message as message,
               m.meta::jsonb as meta
          from unnest(p_lane, p_key, p_group, p_attempt, p_message) u(lane, key, grp, attempt, message)
          join queen.lanes k on k.num = u.lane
          join queen.lanes l on l.num = k.origin
          cross join lateral queen.unpack_segment(u.lane, now(), 1, uuid_send(u.key), '\x01'::bytea || u.message) m
    loop
        v_seq := queen.find_message(r.lane, (r.message).key);
        if queen.stored_id(r.lane, v_seq) = (r.message).message_id then
            perform queen.add_dead_letter((r.message).message_id, r.lane_id, r.lane, v_seq, r.grp,
                                          coalesce(r.meta ->> 'lastError', 'Retry cancelled'), greatest(r.attempt - 2, 0));
        end if;
        perform queen.note_attempt(r.message, r.grp, r.lane, greatest(r.attempt - 1, 0), 'x', r.meta ->> 'correlationId', null,
                                   clock_timestamp(), null, null, 'Retry cancelled', null, null);
    end loop;
end
$$;
