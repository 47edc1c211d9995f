-- queen.note_empty: record that wildcard pops of these groups found no messages on these queues.
--
-- called by  broker/src/broker/pop/watermark.c (call "note_empty"), at most every 30 s per queue and group
-- locks      consumer_watermarks by (queue, group)
create or replace function queen.note_empty(p_queue text[], p_group text[])
returns void
language sql
as $$
    insert into queen.consumer_watermarks as w (queue_name, consumer_group)
    select u.queue, u.grp
      from (select distinct queue, grp from unnest(p_queue, p_group) x(queue, grp)) u
     order by u.queue, u.grp
        on conflict (queue_name, consumer_group)
        do update set last_empty_scan_at = now(), updated_at = now()
$$;
