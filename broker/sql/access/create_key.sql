-- queen.create_key: POST /api/v1/keys.
--
-- needs: key_json
-- called by  broker/src/api/admin/keys.c (call "create_key")
-- in         p_hash: SHA-256 of the key; p_role or p_rules, the other is null; p_seconds: it expires after so many, null: never; p_by: who creates it, or null; p_limits: or null
-- out        201 and the key; 409 if the name is taken, or there are too many keys
-- locks      the row of queen.api_keys_version
create or replace function queen.create_key(p_id text, p_name text, p_hash bytea, p_role text, p_rules text, p_seconds bigint, p_by text, p_limits text)
returns table (status int, answer json)
language plpgsql
as $$
declare
    k queen.api_keys;
begin
    update queen.api_keys_version set version = gen_random_uuid();
    if (select count(*) from queen.api_keys) >= 10000 then
        return query select 409, json_build_object('error', 'there are 10000 keys already; revoke some first');
        return;
    end if;
    insert into queen.api_keys (id, name, hash, role, rules, created_by, expires_at, limits)
    values (p_id, p_name, p_hash, p_role, p_rules, p_by, clock_timestamp() + p_seconds * interval '1 s', p_limits)
        on conflict do nothing
    returning * into k;
    if k.id is null then
        return query select 409, json_build_object('error', format('there is a key "%s" already', p_name));
    else
        return query select 201, queen.key_json(k);
    end if;
end
$$;
