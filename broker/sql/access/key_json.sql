-- queen.key_json: an API key as the interface shows it.
--
-- needs: iso_ms
-- called by  queen.create_key, queen.list_keys
create or replace function queen.key_json(k queen.api_keys)
returns json
language sql stable
as $$
    select json_build_object('id', k.id, 'name', k.name, 'role', k.role, 'allow', k.rules, 'limits', k.limits, 'createdAt', queen.iso_ms(k.created_at), 'createdBy', k.created_by,
                             'expiresAt', queen.iso_ms(k.expires_at), 'expired', coalesce(k.expires_at <= clock_timestamp(), false))
$$;
