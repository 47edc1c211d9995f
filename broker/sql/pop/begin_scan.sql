-- queen.begin_scan: record that a group is about to get consumers on the partitions of a queue, page by page.
--
-- called by  queen.discover_page, in a transaction of its own
-- effects    until queen.fill_scans has seen a consumer on every partition, a partition without one counts as not consumed by the
--            group (queen.slowest_cursor): retention between two pages, or after a broker that died, keeps its messages
-- locks      the row of group_scans, 100 ms at most. A SQL session that holds it has popped for the same group and has recorded the same
create or replace function queen.begin_scan(p_queue_id uuid, p_group text)
returns void
language plpgsql
as $$
begin
    perform set_config('lock_timeout', '100ms', true);
    insert into queen.group_scans as s (queue_id, grp) values (p_queue_id, p_group)
        on conflict (queue_id, grp) do update set unread = true, popped_at = now(), filled = null;
exception when lock_not_available then
    null;
end
$$;
