-- For people: by tenant, the longest first.
select tenant, count(*)::int8, min(since), max(attempts)::int8, min(next_attempt_at),
       (array_agg(last_error order by next_attempt_at desc))[1]
  from platform.held_lane
 where queue = $1::text
 group by tenant
 order by min(since), tenant
