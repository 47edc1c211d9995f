-- queen.timeline: GET /api/v1/messages/timeline: the history of a message, and whether and when it will be retried.
--
-- needs: timeline_messages, timeline_groups, timeline_events, retry_policy_of, iso_ms, strict_int
-- called by  broker/src/api/admin/retries.c
-- in         p_args: correlationId, transactionId or messageId; queue, partition, consumerGroup: only of these;
--            limit (100, at most 1000), offset: the page of messages
-- out        200 with a summary in plain fields, and the groups and events of each message; 404 if nothing is found
-- raises     QN001: see queen.timeline_messages
--
-- The summary covers all messages, the list is a page of them (limit, offset). truncated: there are more than c_most; the summary covers
-- so many.
--
-- Of several groups or messages, the one that needs attention most determines the status.
create or replace function queen.timeline(p_args jsonb)
returns table (status int, answer text)
language plpgsql
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    c_most   constant int := 10000; -- messages that are looked at
    v_limit  int := least(greatest(queen.strict_int(p_args, 'limit', 100), 1), 1000);
    v_offset bigint := greatest(queen.strict_int(p_args, 'offset', 0), 0);
    v_sum    record;
begin
    with found as materialized (
        select f.lane, f.seq, f.due_at, (f.message).message_id as id, (f.message).transaction_id as transaction_id,
               (f.message).created_at as created_at, (f.message).key as key, (f.message).meta::jsonb as meta,
               l.id as lane_id, l.name as lane_name, q.name as queue_name,
               queen.retry_policy_of(q.retry_policy, (f.message).meta::jsonb) as policy, q.retry_limit
          from (select f.* from queen.timeline_messages(p_args) f limit c_most + 1) f
          join queen.lanes l on l.num = f.lane
          join queen.queues q on q.id = l.queue_id
         where (not p_args ? 'queue' or q.name = p_args ->> 'queue') and (not p_args ? 'partition' or l.name = p_args ->> 'partition')
    ), page as materialized (
        select f.* from found f order by f.created_at, f.id limit v_limit offset v_offset
    ), groups as materialized (
        select f.id, g.*,
               coalesce(g.max_attempts, (f.policy ->> 'maxAttempts')::int, f.retry_limit + 1) as most
          from found f
          cross join lateral queen.timeline_groups(f.lane, f.seq, f.id, f.key, f.transaction_id, p_args ->> 'consumerGroup') g
         where f.due_at is null
    ), states as ( -- one per message and group; a message without consumers has one too
        select f.id, g.grp, coalesce(g.status, case when f.due_at is not null then 'SCHEDULED'
                                                    when f.seq is null then 'DELIVERED' else 'PENDING' end) as status,
               coalesce(g.attempt, 0) as attempt,
               coalesce(g.most, (f.policy ->> 'maxAttempts')::int, f.retry_limit + 1) as most,
               coalesce(g.next_at, f.due_at) as next_at, g.error
          from found f left join groups g on g.id = f.id
    ), ranked as materialized (
        select s.*, array_position(array['RETRYING', 'FAILED', 'LEASED', 'PENDING', 'SCHEDULED', 'DELIVERED'], s.status) as rank
          from states s
    ), worst as (
        select distinct on (r.id) r.* from ranked r order by r.id, r.rank, r.next_at
    ), events as (
        select f.id, e.* from page f
          cross join lateral queen.timeline_events(f.lane, f.seq, f.id, f.key, f.created_at, f.due_at, p_args ->> 'consumerGroup') e
         union all
        select g.id, g.leased_at, 999999, 'delivered', g.grp, g.attempt, null, null, null, null, null, null
          from groups g where g.leased_at is not null
    ), shown as (
    select json_agg(json_build_object(
               'id', f.id, 'transactionId', f.transaction_id, 'queue', f.queue_name, 'partition', f.lane_name,
               'partitionId', f.lane_id, 'correlationId', coalesce(f.meta ->> 'correlationId', h.correlation_id),
               'eventType', f.meta -> 'eventType', 'createdAt', queen.iso_ms(f.created_at),
               'status', w.status, 'attempt', w.attempt, 'maxAttempts', w.most, 'nextAttemptAt', queen.iso_ms(w.next_at),
               'consumerGroups', (select coalesce(json_agg(json_build_object(
                                             'consumerGroup', g.grp, 'status', g.status, 'attempt', g.attempt, 'maxAttempts', g.most,
                                             'nextAttemptAt', queen.iso_ms(g.next_at), 'lastError', g.error) order by g.grp), '[]')
                                    from groups g where g.id = f.id),
               'events', (select coalesce(json_agg(json_strip_nulls(json_build_object(
                                     'at', queen.iso_ms(e.at), 'event', e.event, 'consumerGroup', e.grp, 'attempt', e.attempt,
                                     'nextAttemptAt', queen.iso_ms(e.next_at), 'error', e.error, 'errorCode', e.error_code,
                                     'worker', e.worker, 'targetQueue', e.target, 'times', e.times)) order by e.at, e.place), '[]')
                            from events e where e.id = f.id)) order by f.created_at, f.id) as messages
      from page f
      join worst w on w.id = f.id
      left join lateral (select a.correlation_id from queen.attempts a where a.message_id = f.id limit 1) h on true
    )
    select (select s.messages from shown s) as messages, count(*) as n,
           (array_agg(w.status order by w.rank, w.next_at))[1] as status,
           (array_agg(w.attempt order by w.rank, w.next_at))[1] as attempt,
           (array_agg(w.most order by w.rank, w.next_at))[1] as most,
           min(w.next_at) as next_at,
           (array_agg(coalesce(f.meta ->> 'correlationId', h.correlation_id)))[1] as correlation_id
      into v_sum
      from found f
      join worst w on w.id = f.id
      left join lateral (select a.correlation_id from queen.attempts a where a.message_id = f.id limit 1) h on true;
    if v_sum.n = 0 then
        return query select 404, '{"error":"Nothing is known of such a message"}';
        return;
    end if;
    return query
    select 200, json_build_object(
        'correlationId', v_sum.correlation_id, 'status', v_sum.status, 'attempt', v_sum.attempt, 'maxAttempts', v_sum.most,
        'nextAttemptAt', queen.iso_ms(v_sum.next_at), 'total', least(v_sum.n, c_most), 'limit', v_limit, 'offset', v_offset,
        'truncated', v_sum.n > c_most, 'messages', coalesce(v_sum.messages, '[]'))::text;
end
$$;
