-- queen.drop_skips: remove the skips of a group on these lanes, so that it receives those messages.
--
-- needs: mind_skips
-- called by  queen.seek_group, queen.forget_group, queen.drop_group_skips
-- locks      the lanes with such skips in num order; before any consumer
create or replace function queen.drop_skips(p_group text, p_lanes bigint[])
returns void
language plpgsql
as $$
declare
    v_lanes bigint[];
begin
    if p_group = '' then
        return; -- '' stands for deleted messages
    end if;
    select array_agg(k.num) into v_lanes
      from (select l.num from queen.lanes l
             where l.num = any (array(select distinct s.lane from queen.skips s where s.lane = any (p_lanes) and s.grp = p_group))
             order by l.num for no key update) k;
    if v_lanes is not null then
        delete from queen.skips s where s.lane = any (v_lanes) and s.grp = p_group;
        perform queen.mind_skips(v_lanes);
    end if;
end
$$;
