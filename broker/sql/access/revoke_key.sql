-- queen.revoke_key: DELETE /api/v1/keys/:key.
--
-- called by  broker/src/api/admin/keys.c (call "revoke_key")
-- in         p_key: its id or name
-- out        200 and the id; 404 and id null if there is no such key
-- locks      the row of queen.api_keys_version, then the key
create or replace function queen.revoke_key(p_key text)
returns table (status int, answer json, id text)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_id   text;
    v_name text;
begin
    update queen.api_keys_version set version = gen_random_uuid();
    delete from queen.api_keys k where k.id = p_key or k.name = p_key returning k.id, k.name into v_id, v_name;
    if v_id is null then
        return query select 404, json_build_object('error', 'there is no such key'), null::text;
    else
        return query select 200, json_build_object('revoked', true, 'id', v_id, 'name', v_name), v_id;
    end if;
end
$$;
