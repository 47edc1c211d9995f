-- queen.strict_int: an integer parameter of one of our own administrative calls.
--
-- called by  the functions behind broker/src/api/sql_endpoint.c that are not part of the public contract (queen.param_int is)
-- in         p_args: from sql_endpoint.c, where parameters of path and query are strings
-- out        the integer; the fallback if it is missing
-- raises     QN001 for anything else
create or replace function queen.strict_int(p_args jsonb, p_name text, p_fallback bigint)
returns bigint
language plpgsql immutable parallel safe
as $$
begin
    if p_args ->> p_name !~ '^[+-]?[0-9]{1,18}$' then
        raise exception '% must be a whole number', p_name using errcode = 'QN001';
    end if;
    return coalesce((p_args ->> p_name)::bigint, p_fallback);
end
$$;
