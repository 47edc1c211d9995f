-- statement: held_close
-- A lane was seen to be empty.
select platform.held_close($1::text, $2::text, $3::text, $4::int8, $5::text);

-- statement: held_enter
-- The lanes of a partition: what its new owner begins with.
select tenant, attempts, wait_ms, replay from platform.held_enter($1::text, $2::text, $3::text, $4::int8, $5::int8);

-- statement: held_list
-- For people: by tenant, the longest first.
select tenant, count(*)::int8, min(since), max(attempts)::int8, min(next_attempt_at),
       (array_agg(last_error order by next_attempt_at desc))[1]
  from platform.held_lane
 where queue = $1::text
 group by tenant
 order by min(since), tenant;

-- statement: held_note
-- An attempt has failed.
select platform.held_note($1::text, $2::text, $3::text, $4::int8, $5::text, $6::int4, $7::int8, $8::text);

-- statement: held_open
-- Before the first event goes into a lane.
select platform.held_open($1::text, $2::text, $3::text, $4::int8, $5::text, $6::int8, $7::text, $8::bool);
