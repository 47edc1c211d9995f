-- queen.prometheus_text: the families of /metrics/prometheus that come from the database, as text.
--
-- needs: count_waiting, parked_spans, queue_stats, scheduled_stats
-- called by  broker/src/api/snapshot.c (call "prometheus_text"), rarely (see broker/src/api/monitoring/snapshot.h)
-- in         p_queues: names of queues separated by commas, * for any characters: others get no series of their own
-- out        Prometheus' text format. Per queue: those with a row of metrics in the last ten minutes or with waiting
--            consumers, at most the 1000 busiest; per queue and group: the 1000 largest backlogs, from maintained sums; per worker: those that reported in the last ten minutes.
--            Rates are those of the last period of each worker, 0 if it contained nothing.
-- locks      as queen.count_waiting
create or replace function queen.prometheus_text(p_queues text)
returns text
language sql volatile
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
select queen.count_waiting();
with now as (select clock_timestamp() as t),
patterns as ( -- of LIKE
    select array_agg(replace(replace(replace(replace(trim(x), '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')) as list
      from unnest(string_to_array(p_queues, ',')) x),
recent as ( -- k: factor from a row to a rate per minute; 0 if a newer row is overdue
    select m.*, greatest(extract(epoch from now.t - m.at) - m.period_ms / 2000.0, 0) as age,
           case when m.at > now.t - m.period_ms * interval '2 milliseconds' - interval '2 seconds'
                then 60000.0 / m.period_ms else 0 end as k
      from now, queen.queue_lag_metrics m where m.at > now.t - interval '10 minutes'),
waiting as (
    select p.queue_name, sum(p.parked) as parked
      from now, queen.parked_spans(now.t - interval '1 second', now.t, null) p where p.until >= now.t group by 1),
counted as (
    select r.queue_name, min(r.age) as age, sum(r.k * r.push_requests) as push_requests,
           sum(r.k * r.push_messages) as push_messages, sum(r.k * r.pop_messages) as pop_messages,
           sum(r.k * r.pop_empty) as pop_empty, sum(r.k * r.transactions) as transactions,
           sum(r.k * r.ack_success) as ack_success, sum(r.k * r.ack_failed) as ack_failed,
           sum(sign(r.k) * r.lag_us) / nullif(sum(sign(r.k) * r.pop_messages), 0) / 1000 as lag,
           max(sign(r.k) * r.lag_max_us) / 1000.0 as lag_max
      from recent r group by 1),
queues as (
    select format('queue="%s"', replace(replace(replace(q.name, '\', '\\'), '"', '\"'), E'\n', '\n')) as l, c.*,
           coalesce(w.parked, 0) as parked
      from (select queue_name as name from counted union select queue_name from waiting) q
      join patterns p on q.name like any (p.list)
      left join counted c on c.queue_name = q.name left join waiting w on w.queue_name = q.name
     order by coalesce(c.push_messages + c.pop_messages, 0) desc, q.name limit 1000),
workers as (
    select format('hostname="%s",worker_id="%s",pid="%s"', replace(replace(w.hostname, '\', '\\'), '"', '\"'), w.worker_id,
                  w.pid) as l, w.*, 60000.0 / w.period_ms as k,
           greatest(extract(epoch from now.t - w.at) - w.period_ms / 2000.0, 0) as age
      from now, (select distinct on (hostname, worker_id, pid) * from queen.worker_metrics
                  where at > clock_timestamp() - interval '10 minutes'
                  order by hostname, worker_id, pid, at desc) w),
total as (
    select coalesce(sum(push_requests), 0) as push_requests, coalesce(sum(pop_requests), 0) as pop_requests,
           coalesce(sum(ack_requests), 0) as ack_requests, coalesce(sum(transactions), 0) as transactions,
           coalesce(sum(push_messages), 0) as push_messages, coalesce(sum(pop_messages), 0) as pop_messages,
           coalesce(sum(ack_success), 0) as ack_success, coalesce(sum(ack_failed), 0) as ack_failed,
           coalesce(sum(db_errors), 0) as db_errors, coalesce(sum(dlq), 0) as dlq
      from queen.worker_metrics_summary),
dead as (
    select format('queue="%s"', replace(replace(replace(f.name, '\', '\\'), '"', '\"'), E'\n', '\n')) as l, f.dead_letter
      from queen.queue_stats() f join patterns p on f.name like any (p.list) where f.dead_letter > 0),
flying as (
    select c.queue_id, c.grp, sum(coalesce(c.leased, greatest(c.leased_to - c.cursor_seq, 0))) as messages
      from now, queen.consumer_stats c where c.lease_until > now.t group by 1, 2),
largest as ( -- a queue without groups has one with an empty group
    select q.name, coalesce(g.consumer_group, k.grp) as grp, coalesce(g.pending, 0) as pending, g.oldest_pending_at,
           coalesce(f.messages, 0) as in_flight, coalesce(k.retrying, 0) as retrying, coalesce(k.dead, 0) as dead
      from (select s.queue_id, s.consumer_group, s.pending_messages as pending, s.oldest_pending_at
              from queen.stats s where s.stat_type = 'group' and s.child_count > 0
            union all
            select w.queue_id, '', w.pending_messages, w.oldest_pending_at
              from queen.stats w
             where w.stat_type = 'queue'
               and not exists (select from queen.stats s where s.stat_type = 'group' and s.queue_id = w.queue_id and s.child_count > 0)) g
      full join (select w.* from queen.waiting_counts w where w.retrying + w.dead > 0) k on k.queue_id = g.queue_id and k.grp = g.consumer_group
      left join flying f on f.queue_id = g.queue_id and f.grp = g.consumer_group
      join queen.queues q on q.id = coalesce(g.queue_id, k.queue_id)
      join patterns p on q.name like any (p.list)
     order by 3 desc, coalesce(k.retrying, 0) + coalesce(k.dead, 0) desc, 1, 2 limit 1000),
backlog as (
    select format('queue="%s",group="%s"', replace(replace(replace(g.name, '\', '\\'), '"', '\"'), E'\n', '\n'),
                  replace(replace(replace(g.grp, '\', '\\'), '"', '\"'), E'\n', '\n')) as l, g.*,
           case when g.pending > 0 then greatest(extract(epoch from now.t - g.oldest_pending_at), 0) end as age
      from now, largest g),
delayed as (
    select format('queue="%s"', replace(replace(replace(q.name, '\', '\\'), '"', '\"'), E'\n', '\n')) as l, w.delayed
      from queen.waiting_counts w join queen.queues q on q.id = w.queue_id join patterns p on q.name like any (p.list)
     where w.delayed > 0
     order by w.delayed desc, q.name limit 1000),
samples (nth, family, help, labels, value) as (
    select 100 + v.nth, 'queen_cluster_' || v.name || '_total', v.help, 'scope="cluster"', v.value
      from total t cross join lateral (values
           (1, 'push_requests', 'push requests of all servers since ever', t.push_requests),
           (2, 'pop_requests', 'pop requests of all servers since ever', t.pop_requests),
           (3, 'ack_requests', 'acknowledgement requests of all servers since ever', t.ack_requests),
           (4, 'transactions', 'transactions of all servers since ever', t.transactions),
           (5, 'push_messages', 'messages stored by all servers since ever', t.push_messages),
           (6, 'pop_messages', 'messages delivered by all servers since ever', t.pop_messages),
           (7, 'ack_messages', 'acknowledgements at all servers since ever', t.ack_success + t.ack_failed),
           (8, 'db_errors', 'failed calls to the database of all servers since ever', t.db_errors),
           (9, 'dlq', 'messages given up by all servers since ever', t.dlq)) v(nth, name, help, value)
    union all
    select 110, 'queen_cluster_ack_total', 'acknowledgements at all servers since ever, by result',
           format('scope="cluster",result="%s"', v.result), v.value
      from total t cross join lateral (values ('success', t.ack_success), ('failed', t.ack_failed)) v(result, value)
    union all
    select 150 + v.nth, 'queen_queue_' || v.name, v.help, b.l, v.value
      from backlog b cross join lateral (values
           (1, 'pending', 'messages that the group has not acknowledged', greatest(b.pending, 0)::numeric),
           (2, 'oldest_pending_seconds', 'age of the oldest of them; 0 if there is none', b.age),
           (3, 'in_flight', 'messages under a lease', b.in_flight),
           (4, 'retrying', 'messages that failed or were given back, and wait for another delivery', b.retrying),
           (5, 'dead_letters', 'dead letters stored', b.dead)) v(nth, name, help, value)
    union all
    select 156, 'queen_queue_delayed', 'messages that wait for the time that their producer set, of queues that have some', d.l, d.delayed
      from delayed d
    union all
    select 200 + v.nth, 'queen_queue_' || v.name, v.help, q.l || v.more, v.value
      from queues q cross join lateral (values
           (1, 'push_requests_per_minute', 'push requests in the last minute', '', q.push_requests),
           (2, 'push_messages_per_minute', 'messages stored in the last minute', '', q.push_messages),
           (3, 'pop_messages_per_minute', 'messages delivered in the last minute', '', q.pop_messages),
           (4, 'pop_empty_per_minute', 'pops without a message in the last minute', '', q.pop_empty),
           (5, 'transactions_per_minute', 'transactions in the last minute', '', q.transactions),
           (6, 'ack_per_minute', 'acknowledgements in the last minute', ',result="success"', q.ack_success),
           (6, 'ack_per_minute', 'acknowledgements in the last minute', ',result="failed"', q.ack_failed),
           (7, 'pop_lag_milliseconds', 'from stored to delivered, in the last minute', ',stat="avg"', q.lag),
           (7, 'pop_lag_milliseconds', 'from stored to delivered, in the last minute', ',stat="max"', q.lag_max),
           (8, 'parked_consumers', 'pops of all servers that wait for a message', '', q.parked),
           (9, 'metrics_age_seconds', 'since something was last counted for the queue', '', q.age)
           ) v(nth, name, help, more, value)
     where v.nth <> 9 or q.age is not null
    union all
    select 300 + v.nth, 'queen_worker_' || v.name, v.help, w.l || v.more, v.value
      from workers w cross join lateral (values
           (1, 'event_loop_lag_milliseconds', 'how late the event loop was', ',stat="avg"', w.loop_lag_us / 1000.0),
           (1, 'event_loop_lag_milliseconds', 'how late the event loop was', ',stat="max"', w.loop_lag_max_us / 1000.0),
           (2, 'free_slots', 'database connections that could still be used', ',stat="avg"', w.free_slots::numeric),
           (2, 'free_slots', 'database connections that could still be used', ',stat="min"', w.free_slots_min),
           (3, 'job_queue_size', 'operations that wait for a batch', ',stat="avg"', w.job_queue::numeric),
           (3, 'job_queue_size', 'operations that wait for a batch', ',stat="max"', w.job_queue_max),
           (4, 'lag_milliseconds', 'from stored to delivered', ',stat="avg"',
               coalesce(w.lag_us / nullif(w.pop_messages, 0) / 1000.0, 0)),
           (4, 'lag_milliseconds', 'from stored to delivered', ',stat="max"', w.lag_max_us / 1000.0),
           (5, 'db_connections', 'open database connections', '', w.db_connections),
           (6, 'backoff_size', 'always 0: nothing backs off here', '', 0),
           (7, 'jobs_done_per_minute', 'operations finished', '', w.k * w.jobs_done),
           (8, 'db_errors_per_minute', 'failed calls to the database', '', w.k * w.db_errors),
           (9, 'dlq_per_minute', 'messages given up', '', w.k * w.dlq),
           (10, 'metrics_age_seconds', 'since the worker last wrote its metrics', '', w.age),
           (11, 'requests_per_minute', 'requests by kind', ',op="push"', w.k * w.push_requests),
           (11, 'requests_per_minute', 'requests by kind', ',op="pop"', w.k * w.pop_requests),
           (11, 'requests_per_minute', 'requests by kind', ',op="ack"', w.k * w.ack_requests),
           (11, 'requests_per_minute', 'requests by kind', ',op="transaction"', w.k * w.transactions),
           (12, 'messages_per_minute', 'messages by kind', ',op="push"', w.k * w.push_messages),
           (12, 'messages_per_minute', 'messages by kind', ',op="pop"', w.k * w.pop_messages),
           (12, 'messages_per_minute', 'messages by kind', ',op="ack"', w.k * (w.ack_success + w.ack_failed)),
           (13, 'ack_per_minute', 'acknowledgements by result', ',result="success"', w.k * w.ack_success),
           (13, 'ack_per_minute', 'acknowledgements by result', ',result="failed"', w.k * w.ack_failed)
           ) v(nth, name, help, more, value)
    union all
    select 314, 'queen_servers', 'server processes heard of in the last ten minutes', format('state="%s"', v.state), v.n
      from (select count(*) filter (where alive) as alive, count(*) filter (where not alive) as dead
              from (select bool_or(w.age < w.period_ms / 500.0 + 5) as alive from workers w group by w.hostname, w.pid) p) c
     cross join lateral (values ('alive', c.alive), ('dead', c.dead)) v(state, n)
    union all
    select 400, 'queen_dlq_depth', 'dead letters stored', 'scope="cluster"', coalesce(sum(d.dead_letter), 0) from dead d
    union all
    select 401, 'queen_dlq_depth_by_queue', 'dead letters stored, of queues that have some', d.l, d.dead_letter from dead d
    union all
    select 402, 'queen_cluster_redriven_total', 'dead letters sent on their way again, of all servers since ever', 'scope="cluster"',
           (r.last_value + r.is_called::int)::numeric from queen.redriven r
    union all
    select 450 + v.nth, v.name, v.help, 'scope="cluster"', v.value
      from now, queen.stats_pass p, queen.rotation r, queen.waiting_pass w
     cross join lateral (values
           (1, 'queen_statistics_age_seconds', 'since backlogs were last counted', extract(epoch from now.t - p.passed_at)),
           (2, 'queen_waiting_age_seconds', 'since delayed, retrying and dead messages were last counted', extract(epoch from now.t - w.counted_at)),
           (3, 'queen_feed_bytes', 'size of the change feed, which brokers read and rotation empties',
               (pg_relation_size('queen.changes_a') + pg_relation_size('queen.changes_b'))::numeric),
           (4, 'queen_feed_rotated_seconds', 'since the feed last began a new slot', extract(epoch from now.t - r.switched_at))
           ) v(nth, name, help, value)
    union all
    select 500 + v.nth, v.name, v.help, 'scope="cluster"', v.value
      from queen.scheduled_stats() f
     cross join lateral (values (1, 'queen_scheduled_waiting', 'messages that wait for their time, about', f.waiting),
                                (2, 'queen_scheduled_due', 'messages whose time has come and that are not delivered yet, 10000 at most', f.due)
                        ) v(nth, name, help, value))
select coalesce(string_agg(
           case when s.first then format(E'# HELP %s %s\n# TYPE %s %s\n', s.family, s.help, s.family,
                                         case when s.family like '%\_total' then 'counter' else 'gauge' end) else '' end
           || format(E'%s{%s} %s\n', s.family, s.labels, trim_scale(round(coalesce(s.value, 0)::numeric, 3))), ''
           order by s.nth, s.labels), '')
  from (select *, row_number() over (partition by nth order by labels) = 1 as first from samples) s
$$;
