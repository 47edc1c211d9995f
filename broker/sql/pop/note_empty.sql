-- queen.note_empty: record that wildcard pops of these groups found no messages on these queues.
--
-- called by  broker/src/broker/pop/watermark.c (call "note_empty"), at most every 30 s per queue and group; SQL pops
-- locks      consumer_watermarks, skipping rows that another session has changed and not committed: its note is as good
create or replace function queen.note_empty(p_queue text[], p_group text[])
returns void
language plpgsql
as $$
begin
    update queen.consumer_watermarks w set last_empty_scan_at = now(), updated_at = now()
      from (select k.queue_name, k.consumer_group from unnest(p_queue, p_group) u(queue, grp)
             join queen.consumer_watermarks k on k.queue_name = u.queue and k.consumer_group = u.grp
             order by k.queue_name, k.consumer_group
               for update of k skip locked) mine
     where w.queue_name = mine.queue_name and w.consumer_group = mine.consumer_group;
    insert into queen.consumer_watermarks (queue_name, consumer_group)
    select u.queue, u.grp
      from (select distinct queue, grp from unnest(p_queue, p_group) x(queue, grp)) u
     where not exists (select from queen.consumer_watermarks k where k.queue_name = u.queue and k.consumer_group = u.grp offset 0)
       -- An insert would wait for one of the same key that is not committed.
       and pg_try_advisory_xact_lock(737021, hashtext(u.queue || ' ' || u.grp))
        on conflict do nothing;
end
$$;
