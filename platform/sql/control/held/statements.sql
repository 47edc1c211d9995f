-- statement: held_close
-- returns one row: done void?
-- Deletes a lane that was found empty.
select platform.held_close($1::text, $2::text, $3::text, $4::int8, $5::text);

-- statement: held_enter
-- returns: tenant text?, attempts int4?, wait_ms int8?, replay bool?
-- Records a new owner of a partition and returns its lanes.
select tenant, attempts, wait_ms, replay from platform.held_enter($1::text, $2::text, $3::text, $4::int8, $5::int8);

-- statement: held_list
-- returns: tenant text, lanes int8, since timestamptz?, attempts int8?, next_at timestamptz?, error text?
-- Held lanes by tenant, oldest first.
select tenant, count(*)::int8, min(since), max(attempts)::int8, min(next_attempt_at),
       (array_agg(last_error order by next_attempt_at desc))[1]
  from platform.held_lane
 where queue = $1::text
 group by tenant
 order by min(since), tenant;

-- statement: held_note
-- returns one row: done void?
-- Records a failed attempt.
select platform.held_note($1::text, $2::text, $3::text, $4::int8, $5::text, $6::int4, $7::int8, $8::text);

-- statement: held_open
-- returns one row: done void?
-- Records a lane before its first event is pushed.
select platform.held_open($1::text, $2::text, $3::text, $4::int8, $5::text, $6::int8, $7::text, $8::bool);
