-- An attempt has failed.
update platform.held_lane
   set attempts = $4::int4, next_attempt_at = clock_timestamp() + $5::int8 * interval '1 millisecond', last_error = $6::text
 where queue = $1::text and partition = $2::text and tenant = $3::text
