-- Before the first event goes into a lane.
select platform.held_open($1::text, $2::text, $3::text, $4::int8, $5::text, $6::int8, $7::text)
