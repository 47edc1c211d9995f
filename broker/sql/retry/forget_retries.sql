-- queen.forget_retries: remove the copies of a message that wait for a retry or are due and not consumed.
--
-- needs: lock_lane, find_message, remove_message
-- called by  queen.delete_message, queen.retry_message, queen.move_to_dlq, queen.delete_through_messages: before they remove the message
--            itself, so that the dead letter of a retry that is being cancelled is removed with it
-- in         p_lane: the partition, which the caller has locked (queen.lock_lane); p_key of the message
--            p_groups: the groups; null: all. p_history: remove their history, too
-- out        the number of copies removed
-- locks      the retry lanes once more, because one may have been created since queen.lock_lane searched for them
create or replace function queen.forget_retries(p_lane bigint, p_key uuid, p_groups text[], p_history boolean)
returns int
language plpgsql
as $$
declare
    v_lane  bigint;
    v_seq   bigint;
    v_n     int;
    v_gone  int := 0;
begin
    for v_lane in
        select r.num from queen.lanes r
         where r.origin = p_lane and (p_groups is null or r.name = any (p_groups)) order by r.num
    loop
        perform queen.lock_lane(v_lane);
        delete from queen.scheduled s where s.lane = v_lane and s.key = p_key;
        get diagnostics v_n = row_count;
        v_gone := v_gone + v_n;
        v_seq := queen.find_message(v_lane, p_key);
        if v_seq is not null then
            perform queen.remove_message(v_lane, v_seq);
            v_gone := v_gone + 1;
        end if;
    end loop;
    if p_history then
        delete from queen.attempts a
         where a.lane = p_lane and a.key = p_key and (p_groups is null or a.grp = any (p_groups));
    end if;
    return v_gone;
end
$$;
