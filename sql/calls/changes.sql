select snapshot, lane, lane_id, lane_name, queue_name, emptied,
       case when lane is null then queen.maintenance_flags() end,
       case when lane is null then queen.next_due($3::bigint) end
  from queen.changes_since($1::text, $2::int)
