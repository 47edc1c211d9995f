-- queen.count_waiting: count messages that wait outside the backlog of their group, for metrics.
--
-- needs: latest_state
-- called by  queen.prometheus_text, in a statement of its own before it reads queen.waiting_counts
-- locks      advisory 737011, without waiting: if another session counts, its result is used. Rows that only this function writes
--
-- The cost follows the number of scheduled messages, retry lanes and dead letters, without a limit. So after a count that took long the
-- next one waits: counting takes at most 2 % of the time of one connection.
create or replace function queen.count_waiting()
returns void
language plpgsql
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_begin timestamptz := clock_timestamp();
begin
    if exists (select from queen.waiting_pass p where v_begin < p.counted_at + greatest(50 * p.took, interval '2 seconds'))
       or not pg_try_advisory_xact_lock(737011) then
        return;
    end if;
    with found (queue_id, grp, delayed, retrying, dead) as (
        -- A retry lane has the name of its group.
        select coalesce(l.origin_queue, l.queue_id), case when l.origin is null then '' else l.name end,
               case when l.origin is null then s.n else 0 end, case when l.origin is null then 0 else s.n end, 0
          from (select k.lane, count(*) as n from queen.scheduled k group by k.lane) s
          join queen.lanes l on l.num = s.lane
        union all
        -- Retries that are due: in the retry lane, and not consumed.
        select r.origin_queue, r.name, 0, greatest(t.next_seq - greatest(st.cursor_seq + 1, t.first_seq), 0), 0
          from queen.lanes r
          join queen.consumers c on c.lane = r.num and c.grp = r.name
          cross join lateral queen.latest_state(c.num) st
          cross join lateral (select max(g.first_seq + greatest(g.count, 1)) as next_seq, min(g.first_seq) as first_seq
                                from queen.segments g where g.lane = r.num) t
         where r.origin is not null and t.next_seq is not null
        union all
        -- Of a queue that is settled by message: given back, or under a lease that has expired.
        select c.queue_id, c.grp, 0, greatest(st.batch_size - c.leased, 0), 0
          from queen.queues q
          join queen.consumer_stats c on c.queue_id = q.id
          cross join lateral queen.latest_state(c.consumer) st
         where q.by_message and c.leased is not null and c.lag > 0
        union all
        select l.queue_id, d.consumer_group, 0, 0, d.n
          from (select k.lane, k.consumer_group, count(*) as n from queen.dead_letter_queue k group by 1, 2) d
          join queen.lanes l on l.num = d.lane
    ), sums as materialized (
        select f.queue_id, f.grp, sum(f.delayed)::bigint as delayed, sum(f.retrying)::bigint as retrying, sum(f.dead)::bigint as dead
          from found f where f.delayed + f.retrying + f.dead > 0 group by 1, 2
    ), gone as (
        delete from queen.waiting_counts w
         where not exists (select from sums s where s.queue_id = w.queue_id and s.grp = w.grp)
    )
    insert into queen.waiting_counts as w (queue_id, grp, delayed, retrying, dead)
    select s.queue_id, s.grp, s.delayed, s.retrying, s.dead from sums s
        on conflict (queue_id, grp) do update
       set delayed = excluded.delayed, retrying = excluded.retrying, dead = excluded.dead
     where (w.delayed, w.retrying, w.dead) is distinct from (excluded.delayed, excluded.retrying, excluded.dead);
    insert into queen.waiting_pass as p (counted_at, took) values (clock_timestamp(), clock_timestamp() - v_begin)
        on conflict (one) do update set counted_at = excluded.counted_at, took = excluded.took;
end
$$;
