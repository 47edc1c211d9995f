select status, answer::text, null::bytea, false from queen.change_schedule($1::text::jsonb, 'delete')
