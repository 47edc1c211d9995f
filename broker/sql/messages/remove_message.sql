-- queen.remove_message: remove a message from its lane.
--
-- needs: blank_message, forget_message, add_skip, step_over, trim_front, notify_lanes
-- called by  queen.delete_message, queen.retry_message, queen.delete_through_messages; queen.forget_retries for copies on retry lanes
-- effects    replaces it by an empty entry in the segment, removes everything that refers to it, and frees its
--            transaction id. It is not delivered any more
-- locks      none: the caller has locked the lane and its consumers (queen.lock_lane)
create or replace function queen.remove_message(p_lane bigint, p_seq bigint)
returns void
language plpgsql
as $$
declare
    s     queen.segments%rowtype;
    v_pos int;
    v_key bytea;
begin
    select * into s from queen.segments g
     where g.lane = p_lane and g.first_seq <= p_seq order by g.first_seq desc limit 1;
    v_pos := p_seq - s.first_seq;
    v_key := substr(s.keys, v_pos * 16 + 1, 16);
    delete from queen.message_keys k
     where k.lane = p_lane and k.key = encode(v_key, 'hex')::uuid and k.seq = p_seq;
    update queen.segments g
       set keys = overlay(s.keys placing '\xffffffffffff8fffffffffffffffffff'::bytea from v_pos * 16 + 1),
           body = queen.blank_message(s.body, v_pos)
     where g.lane = p_lane and g.first_seq = s.first_seq;
    perform queen.forget_message(p_lane, p_seq);
    perform queen.add_skip(p_lane, '', p_seq);
    perform queen.notify_lanes(-1, array[p_lane]); -- so that it is counted again
    if queen.step_over(p_lane, p_seq, null) then
        perform queen.notify_lanes(0, array[p_lane]);
    end if;
    perform queen.trim_front(p_lane);
end
$$;
