-- Before the first event goes into a lane.
insert into platform.held_lane as h (queue, partition, tenant, since, attempts, next_attempt_at, last_error)
values ($1::text, $2::text, $3::text, clock_timestamp(), 1, clock_timestamp() + $4::int8 * interval '1 millisecond', $5::text)
    on conflict (queue, partition, tenant) do update
   set last_error = excluded.last_error
