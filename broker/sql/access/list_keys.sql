-- queen.list_keys: GET /api/v1/keys.
--
-- needs: key_json
-- called by  broker/src/api/admin/keys.c
create or replace function queen.list_keys()
returns json
language sql stable
as $$
    select json_build_object('keys', coalesce(json_agg(queen.key_json(k) order by k.name collate "C"), '[]'))
      from queen.api_keys k
$$;
