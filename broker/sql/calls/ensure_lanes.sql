-- returns: idx int4, lane int8, lane_id uuid?
select idx, lane, lane_id from queen.resolve_lanes($1::text[], $2::text[], $3::boolean)
