-- The lanes of a partition: what its new owner begins with.
select tenant, attempts, greatest(0, extract(epoch from next_attempt_at - clock_timestamp()) * 1000)::int8
  from platform.held_lane
 where queue = $1::text and partition = $2::text
