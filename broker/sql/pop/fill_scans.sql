-- queen.fill_scans: make the consumers of groups whose SQL pops have stopped before they had looked at all partitions: one bounded step.
--
-- needs: number_consumers, lane_page, step_lanes
-- called by  broker/src/broker/chores.c (call "forget_deleted"); brokers may do so at the same time
-- out        something was done: call again at once
-- effects    from the last page on, only the group's consumers count for retention.  Removes rows of deleted queues and old rows
-- locks      rows of group_scans, skipping; then as queen.number_consumers
create or replace function queen.fill_scans()
returns boolean
language plpgsql
as $$
declare
    s      record;
    v_page record;
begin
    delete from queen.group_scans g
     where g.ctid = any (array(select k.ctid from queen.group_scans k
                                where (not k.unread and k.popped_at < now() - interval '7 days')
                                   or not exists (select from queen.queues q where q.id = k.queue_id)
                                limit 1000 for update skip locked));
    -- Any of them, because one that is locked must not keep the others waiting.
    for s in
        select k.queue_id, k.grp, k.filled from queen.group_scans k
         where k.unread and k.popped_at < now() - interval '1 minute'
         order by random() limit 10 for update skip locked
    loop
        select * into v_page from queen.lane_page(s.queue_id, s.filled, queen.step_lanes());
        continue when exists (select from queen.number_consumers(v_page.lanes, array_fill(s.grp, array[cardinality(v_page.lanes)])) n
                               where n.consumer = 0);
        update queen.group_scans g
           set filled = case when v_page.more then v_page.names[cardinality(v_page.names)] end, unread = v_page.more
         where g.queue_id = s.queue_id and g.grp = s.grp;
        return true;
    end loop;
    return false;
end
$$;
