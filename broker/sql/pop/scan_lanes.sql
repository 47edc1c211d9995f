-- queen.scan_lanes: partitions of a queue with many partitions on which a SQL pop of a group finds messages.
--
-- needs: ensure_consumers, lane_page, pending_lanes, step_lanes, note_empty
-- called by  queen.discover_lanes
-- out        lanes that have messages for the group and no lease, all of one page; none: nothing was found on the pages of this call.  The
--            next call continues behind them
-- effects    creates the group's consumers on the pages that it looks at.  It stops after ten pages, and after a page when it has created
--            queen.step_lanes() consumers.  Notes an empty scan when a whole round has found nothing
-- locks      a new row of group_scans; an old one skipping: while another session holds it, each call begins at a random partition
--            and records nothing.  Then as queen.ensure_consumers
create or replace function queen.scan_lanes(p_queue_id uuid, p_queue text, p_group text)
returns bigint[]
language plpgsql
as $$
declare
    v_mine   boolean; -- this session may record where it ends
    v_start  text;    -- null: the first partition
    v_after  text;
    v_found  boolean; -- in this round
    v_page   record;
    v_lanes  bigint[];
    v_new    int;
    v_pages  int := 0;
    v_made   int := 0;
    v_turned boolean := false; -- the scan has begun with the first partition again
begin
    select s.after, s.found, true into v_start, v_found, v_mine from queen.group_scans s
     where s.queue_id = p_queue_id and s.grp = p_group for update skip locked;
    if v_mine is null then
        -- An insert would wait for a session that has changed the row.
        insert into queen.group_scans (queue_id, grp) select p_queue_id, p_group
         where not exists (select from queen.group_scans s where s.queue_id = p_queue_id and s.grp = p_group)
            on conflict do nothing;
        v_mine := found;
        v_found := false;
    end if;
    if not v_mine then
        select l.name into v_start from queen.lanes l where l.queue_id = p_queue_id order by l.name
         limit 1 offset floor(random() * (select count(*) from (select from queen.lanes k
                                                                 where k.queue_id = p_queue_id limit 200000) n))::bigint;
    end if;
    v_after := v_start;
    loop
        select * into v_page from queen.lane_page(p_queue_id, v_after, queen.step_lanes());
        select count(*) into v_new from unnest(v_page.lanes) u(num)
         where (select c.num from queen.consumers c where c.lane = u.num and c.grp = p_group) is null;
        if v_new > 0 then
            perform queen.ensure_consumers(v_page.lanes, array_fill(p_group, array[cardinality(v_page.lanes)]));
        end if;
        v_made := v_made + v_new;
        v_pages := v_pages + 1;
        v_lanes := array(select d.lane from queen.pending_lanes(p_group, v_page.lanes, false) d where d.lease_us is null);
        v_found := v_found or v_lanes <> '{}';
        if v_page.more then
            v_after := v_page.names[cardinality(v_page.names)];
        else
            v_after := null;
            if v_mine and not v_found then
                perform queen.note_empty(array[p_queue], array[p_group]);
            end if;
            v_found := false;
        end if;
        exit when v_lanes <> '{}' or v_pages >= 10 or v_made >= queen.step_lanes()
               or (v_turned or v_start is null) and (v_after is null or v_after >= v_start);
        v_turned := v_turned or v_after is null;
    end loop;
    if v_mine then
        update queen.group_scans s
           set after = v_after, found = v_found, unread = true, popped_at = now(), filled = null
         where s.queue_id = p_queue_id and s.grp = p_group;
    end if;
    return v_lanes;
end
$$;
