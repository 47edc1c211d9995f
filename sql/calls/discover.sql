select lane, lane_id, lane_name, consumer, pending, lease_us
  from queen.discover($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text)
