-- queen.timeline_groups: the status of a message in each consumer group.
--
-- needs: latest_state, find_message, work_place
-- called by  queen.timeline
-- in         p_lane, p_seq: where the message was pushed to (p_seq null: it was removed, or is scheduled); p_group null: all groups
-- out        a row per group that consumes the lane or has failed with the message
--            status PENDING, LEASED, RETRYING (it will be delivered again: next_at), DELIVERED or FAILED; attempt: the number of attempts
--            so far; leased_at: when it was delivered under the current lease
create or replace function queen.timeline_groups(p_lane bigint, p_seq bigint, p_message_id uuid, p_key uuid, p_transaction_id text,
                                                 p_group text)
returns table (grp text, status text, attempt int, max_attempts int, next_at timestamptz, leased_at timestamptz, error text)
language sql stable
as $$
    with groups as (
        select c.grp from queen.consumers c where c.lane = p_lane and (p_group is null or c.grp = p_group)
         union
        select a.grp from queen.attempts a where a.message_id = p_message_id and (p_group is null or a.grp = p_group)
         union
        select d.consumer_group::text from queen.dead_letter_queue d
         where d.lane = p_lane and d.seq = p_seq and (p_group is null or d.consumer_group = p_group)
    ), looked as (
        select g.grp, last.outcome, last.attempt, last.max_attempts, last.due_at, s.cursor_seq,
               s.lease_first, s.lease_last, s.lease_at,
               w.due_at as waits_until, w.attempt as waits_for, c.seq as copy_seq, c.cursor_seq as copy_cursor,
               c.lease_at as copy_leased_at,
               exists (select from queen.dead_letter_queue d
                        where d.lane = p_lane and d.seq = p_seq and d.consumer_group = g.grp) as dead
          from groups g
          left join lateral (select * from queen.attempts a
                              where a.message_id = p_message_id and a.grp = g.grp order by a.nth desc limit 1) last on true
          left join lateral (
               -- On a work queue the message has its own place: written as that of a cursor and a lease of one message.
               select case when st.taken_seq is null then st.cursor_seq else p_seq - (not w.consumed)::int end as cursor_seq, l.*
                 from queen.consumers k
                 cross join lateral queen.latest_state(k.num) st
                 left join lateral (select p.* from queen.work_place(k.num, st.cursor_seq, st.taken_seq, st.holds_from, st.walk_seq, p_seq) p
                                     where st.taken_seq is not null) w on true
                 left join lateral (select st.lease_first, st.lease_last, st.lease_at where st.taken_seq is null and st.lease_until > now()
                                     union all
                                    select p_seq, p_seq, w.leased_at where w.leased_until is not null) l on true
                where k.lane = p_lane and k.grp = g.grp) s on true
          left join queen.lanes o on o.num = p_lane
          left join queen.lanes r on r.queue_id = o.id and r.name = g.grp
          left join lateral (select w.due_at, w.attempt from queen.scheduled w
                              where w.transaction_id = p_transaction_id and w.lane = r.num and w.key = p_key
                              order by w.due_at limit 1) w on true
          left join lateral (
               select f.seq, case when st.taken_seq is null then st.cursor_seq else f.seq - (not w.consumed)::int end as cursor_seq,
                      case when st.taken_seq is not null then w.leased_at
                           when st.lease_until > now() and f.seq between st.lease_first and st.lease_last then st.lease_at end as lease_at
                 from (select queen.find_message(r.num, p_key)) f(seq)
                 join queen.consumers k on k.lane = r.num and k.grp = g.grp
                 cross join lateral queen.latest_state(k.num) st
                 left join lateral (select p.* from queen.work_place(k.num, st.cursor_seq, st.taken_seq, st.holds_from, st.walk_seq, f.seq) p
                                     where st.taken_seq is not null) w on true
                where f.seq is not null) c on true
    )
    select k.grp,
           case when k.waits_until is not null then 'RETRYING'
                when k.copy_seq > k.copy_cursor then case when k.copy_leased_at is not null then 'LEASED' else 'RETRYING' end
                when k.dead or k.outcome in ('d', 'x', 'm') then 'FAILED'
                when k.outcome = 'c' or k.cursor_seq >= p_seq or (k.outcome in ('r', 'v') and k.copy_seq is null) then 'DELIVERED'
                when p_seq between k.lease_first and k.lease_last then 'LEASED'
                when k.outcome = 'i' then 'RETRYING'
                when p_seq is null and k.outcome is null then 'DELIVERED'
                else 'PENDING' end,
           case when k.waits_until is not null or k.copy_seq > k.copy_cursor
                then coalesce(k.waits_for, k.attempt + 1) - (k.copy_leased_at is null)::int
                when k.attempt is not null then k.attempt + coalesce(k.outcome = 'i' and p_seq between k.lease_first and k.lease_last, false)::int
                when k.cursor_seq >= p_seq or p_seq between k.lease_first and k.lease_last then 1
                else 0 end,
           k.max_attempts,
           case when k.waits_until is not null then k.waits_until
                when k.copy_seq > k.copy_cursor and k.copy_leased_at is null then k.due_at end,
           case when k.copy_seq > k.copy_cursor then k.copy_leased_at
                when p_seq between k.lease_first and k.lease_last and not k.cursor_seq >= p_seq then k.lease_at end,
           (select a.error from queen.attempts a where a.message_id = p_message_id and a.grp = k.grp and a.error is not null
             order by a.nth desc limit 1)
      from looked k
$$;
