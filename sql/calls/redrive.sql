select status, answer, null::bytea, false from queen.redrive($1::text::jsonb)
