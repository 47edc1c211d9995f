-- queen.read_keys: all API keys, if they have changed.
--
-- called by  broker/src/broker/keys.c and broker/src/api/admin/keys.c (call "read_keys")
-- in         p_known: the version that the caller has; null: none
-- out        a row with the version and id null; if it differs from p_known, one row per key follows. expires_s: seconds since 1970
create or replace function queen.read_keys(p_known uuid)
returns table (version uuid, id text, name text, hash bytea, role text, rules text, expires_s bigint, limits text)
language plpgsql stable
as $$
#variable_conflict use_column
declare
    v_version uuid := (select v.version from queen.api_keys_version v);
begin
    return query select v_version, null::text, null::text, null::bytea, null::text, null::text, null::bigint, null::text;
    if v_version is distinct from p_known then
        return query
        select v_version, k.id, k.name::text, k.hash, k.role, k.rules, floor(extract(epoch from k.expires_at))::bigint, k.limits
          from queen.api_keys k
         order by k.id;
    end if;
end
$$;
