select status, answer, null::bytea, false from queen.timeline($1::text::jsonb)
