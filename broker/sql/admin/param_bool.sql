-- queen.param_bool: a boolean parameter of an administrative call.
--
-- called by  the functions behind broker/src/api/sql_endpoint.c
-- out        true for exactly "true" or "1"; the fallback if it is missing; else false
create or replace function queen.param_bool(p_args jsonb, p_name text, p_fallback boolean)
returns boolean
language sql immutable parallel safe
as $$
    select coalesce(p_args ->> p_name in ('true', '1'), p_fallback)
$$;
