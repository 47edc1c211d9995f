select idx, lane, lane_id from queen.ensure_lanes($1::text[], $2::text[])
