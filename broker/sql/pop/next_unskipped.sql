-- queen.next_unskipped: the first sequence number from p_seq on that a group does not skip.
--
-- in         p_settled: messages that the group has settled one by one, or null
--
-- called by  queen.claim_careful, queen.step_over, only for lanes with skips
create or replace function queen.next_unskipped(p_lane bigint, p_group text, p_seq bigint, p_settled int8multirange default null)
returns bigint
language plpgsql stable
as $$
declare
    v_seq  bigint := p_seq;
    v_last bigint;
begin
    loop
        -- The range for all groups and the group's own range that begin here or before. The larger end counts.
        select max(r.last_seq) into v_last
          from unnest(array['', p_group]) g(name)
          cross join lateral (select k.last_seq from queen.skips k
                               where k.lane = p_lane and k.grp = g.name and k.first_seq <= v_seq
                               order by k.first_seq desc limit 1) r;
        if p_settled @> v_seq then
            v_last := greatest(v_last, (select upper(r) - 1 from unnest(p_settled) r where r @> v_seq));
        end if;
        if v_last >= v_seq then
            v_seq := v_last + 1;
        else
            return v_seq;
        end if;
    end loop;
end
$$;
