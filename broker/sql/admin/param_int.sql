-- queen.param_int: an integer parameter of an administrative call.
--
-- called by  the functions behind broker/src/api/sql_endpoint.c
-- in         p_args: from sql_endpoint.c, where parameters of path and query are strings
-- out        the leading decimal integer; the fallback if there is none
create or replace function queen.param_int(p_args jsonb, p_name text, p_fallback bigint)
returns bigint
language sql immutable parallel safe
as $$
    -- 18 digits always fit.
    select coalesce(substring(p_args ->> p_name from '^\s*([+-]?[0-9]{1,18})')::bigint, p_fallback)
$$;
