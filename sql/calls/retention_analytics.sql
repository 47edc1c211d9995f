select 200, queen.retention_analytics($1::text::jsonb)::text, null::bytea, false
