-- queen.parked_spans: the number of parked consumers by time span.
--
-- called by  queen.report_queue_ops, queen.report_parked, queen.prometheus_text
-- in         times; p_queue: one queue, null: all
-- out        spans that overlap the range, only with a number above 0. A number is valid until the next one of its queue and
--            process, or until the last report of the process. Each is written again at least once in an hour, so reading
--            three hours back is enough.
create or replace function queen.parked_spans(p_from timestamptz, p_to timestamptz, p_queue text)
returns table (queue_name text, hostname text, worker_id int, pid int, parked int, since timestamptz, until timestamptz)
language sql stable
set enable_hashjoin = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
    with heard as (
        select w.hostname, w.worker_id, w.pid, max(w.at + w.period_ms * interval '1.6 milliseconds') as until
          from queen.worker_metrics w
         where w.at > p_from - interval '3 hours' and w.at <= p_to
         group by 1, 2, 3),
    told as (
        select r.*, lead(r.at, 1, 'infinity') over
                        (partition by r.queue_name, r.hostname, r.worker_id, r.pid order by r.at) as next
          from queen.queue_parked_replica r
         where r.at > p_from - interval '3 hours' and r.at <= p_to and (p_queue is null or r.queue_name = p_queue))
    select t.queue_name, t.hostname, t.worker_id, t.pid, t.parked, greatest(t.at, p_from),
           least(t.next, h.until + interval '2 seconds', p_to)
      from told t join heard h using (hostname, worker_id, pid)
     where t.parked > 0 and least(t.next, h.until + interval '2 seconds', p_to) > greatest(t.at, p_from)
$$;
