select status, answer::text, null::bytea, false from queen.reschedule($1::text::jsonb)
