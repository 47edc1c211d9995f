select status, answer::text, null::bytea, false from queen.delete_group($1::text::jsonb)
