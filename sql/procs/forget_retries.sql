-- queen.forget_retries: a message was taken from its partition: no group is given it again, and its history goes.
--
-- needs: lock_lane, find_message
-- called by  queen.remove_message; calls it again for copies that are due and not consumed yet
-- locks      of retry lanes where a copy lies: as queen.lock_lane, one after the other
create or replace function queen.forget_retries(p_lane bigint, p_key uuid)
returns void
language plpgsql
as $$
declare
    v_lane bigint;
    v_seq  bigint;
begin
    delete from queen.attempts a where a.lane = p_lane and a.key = p_key;
    for v_lane in select r.num from queen.lanes r where r.origin = p_lane order by r.num loop
        delete from queen.scheduled s where s.lane = v_lane and s.key = p_key;
        v_seq := queen.find_message(v_lane, p_key);
        if v_seq is not null then
            perform queen.lock_lane(v_lane);
            v_seq := queen.find_message(v_lane, p_key);
            if v_seq is not null then
                perform queen.remove_message(v_lane, v_seq);
            end if;
        end if;
    end loop;
end
$$;
