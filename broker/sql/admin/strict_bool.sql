-- queen.strict_bool: a boolean parameter of one of our own administrative calls.
--
-- called by  the functions behind broker/src/api/sql_endpoint.c that are not part of the public contract (queen.param_bool is)
-- out        true for "true" and "1", false for "false" and "0", in any letter case, the fallback if it is missing
-- raises     QN001 for anything else
create or replace function queen.strict_bool(p_args jsonb, p_name text, p_fallback boolean)
returns boolean
language plpgsql immutable parallel safe
as $$
begin
    if lower(p_args ->> p_name) not in ('true', '1', 'false', '0') then
        raise exception '% must be true or false', p_name using errcode = 'QN001';
    end if;
    return coalesce((p_args ->> p_name)::boolean, p_fallback);
end
$$;
