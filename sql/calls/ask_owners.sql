select 200, queen.ask_owners($1::text::jsonb)::text, null::bytea, false
