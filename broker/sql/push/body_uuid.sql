-- queen.body_uuid: a required UUID field of a request body.
--
-- called by  queen.stream_state
-- raises     QN001, naming the field
create or replace function queen.body_uuid(p_body jsonb, p_name text)
returns uuid
language plpgsql immutable
as $$
begin
    if jsonb_typeof(p_body -> p_name) is distinct from 'string'
       or p_body ->> p_name !~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
        raise exception '% must be a UUID', p_name using errcode = 'QN001';
    end if;
    return (p_body ->> p_name)::uuid;
end
$$;
