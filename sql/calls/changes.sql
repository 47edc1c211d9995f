select snapshot, lane, lane_id, lane_name, queue_name, emptied
  from queen.changes_since($1::text, $2::int)
