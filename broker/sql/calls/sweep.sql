-- returns: queue_name text?, type text?, removed int8?, after_us int8?, after_lane int8?, more bool?
select queue_name, type, removed, after_us, after_lane, more
  from queen.sweep($1::boolean, $2::int, $3::int, $4::bigint, $5::bigint, $6::bigint)
