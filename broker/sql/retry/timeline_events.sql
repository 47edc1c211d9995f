-- queen.timeline_events: the recorded events of a message.
--
-- needs: timeline_groups, find_message
-- called by  queen.timeline
-- in         as queen.timeline_groups; p_created_at: when it was pushed; p_due_at: until when it is scheduled (null: it is not)
-- out        in no order; place orders events of the same moment; times: leaseExpired stands for so many deliveries, at is the last one
create or replace function queen.timeline_events(
    p_lane bigint, p_seq bigint, p_message_id uuid, p_key uuid, p_created_at timestamptz, p_due_at timestamptz, p_group text)
returns table (at timestamptz, place int, event text, grp text, attempt int, next_at timestamptz, error text, error_code text,
               worker text, target text, times int)
language sql stable
as $$
    select p_created_at, 0, case when p_due_at is null then 'pushed' else 'scheduled' end, null, null::int, p_due_at, null, null, null, null, null::int
     where p_created_at is not null
     union all
    select a.delivered_at, a.nth * 10 + 1, 'delivered', a.grp, a.attempt, null, null, null, a.worker, null, null
      from queen.attempts a
     where a.message_id = p_message_id and (p_group is null or a.grp = p_group) and a.delivered_at is not null
     union all
    select a.at, a.nth * 10 + 2, 'failed', a.grp, a.attempt, null, a.error, a.error_code, a.worker, null, null
      from queen.attempts a
     where a.message_id = p_message_id and (p_group is null or a.grp = p_group) and a.outcome in ('r', 'i', 'd', 't')
     union all
    select a.at, a.nth * 10 + 3,
           case a.outcome when 'r' then 'retryScheduled' when 'i' then 'redelivery' when 'd' then 'deadLettered' when 'c' then 'completed'
                          when 'v' then 'redriven' when 'm' then 'redrivenToQueue' when 't' then 'triedAgain' else 'retryCancelled' end,
           a.grp, a.attempt, a.due_at, case when a.outcome = 'x' then a.error end, null, a.worker, a.target, null
      from queen.attempts a where a.message_id = p_message_id and (p_group is null or a.grp = p_group)
     union all
    -- Also of the copy that is delivered for a retry.
    select e.expired_at, 900000, 'leaseExpired', e.grp, null, null, null, null, null, null, e.times
      from (select p_lane, p_seq
             union all
            select r.num, queen.find_message(r.num, p_key) from queen.lanes r where r.origin = p_lane) k(lane, seq)
      join queen.expired_leases e on e.lane = k.lane and e.first_seq <= k.seq and e.last_seq >= k.seq
     where p_group is null or e.grp = p_group
     union all
    select d.failed_at, 1000000, 'deadLettered', d.consumer_group, null, null, d.error_message, null, null, null, null
      from queen.dead_letter_queue d
     where d.lane = p_lane and d.seq = p_seq and (p_group is null or d.consumer_group = p_group)
       and not exists (select from queen.attempts a
                        where a.message_id = p_message_id and a.grp = d.consumer_group and a.outcome = 'd')
$$;
