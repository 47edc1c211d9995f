select idx, lane, lane_id from queen.resolve_lanes($1::text[], $2::text[], $3::boolean)
