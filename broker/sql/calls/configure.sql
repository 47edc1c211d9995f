-- The options travel as text: jsonb has no binary form that a client could write.
-- returns: queue_id uuid, default_lane_id uuid, options text, sealed bool?
select queue_id, default_lane_id, options::text, (options ->> 'encryptionEnabled')::boolean
  from queen.configure_queue($1::text, $2::text, $3::text, $4::text::jsonb)
