-- queen.note_empty_scan: a pop of a group has looked at all partitions of a queue and found nothing; noted at most every 30 s.
--
-- needs: note_empty
-- called by  queen.discover, queen.discover_page, queen.pop_candidates
-- For a queue with many partitions queen.scan_lanes does this: a single pop does not look at all of them.
create or replace function queen.note_empty_scan(p_queue text, p_group text)
returns void
language plpgsql
as $$
begin
    if exists (select from queen.queues q where q.name = p_queue
                  and not exists (select from queen.group_scans s where s.queue_id = q.id and s.grp = p_group))
       and not exists (select from queen.consumer_watermarks w
                        where w.queue_name = p_queue and w.consumer_group = p_group
                          and w.updated_at >= now() - interval '30 seconds') then
        perform queen.note_empty(array[p_queue], array[p_group]);
    end if;
end
$$;
