select status, answer::text, null::bytea, false from queen.create_schedule($1::text::jsonb)
