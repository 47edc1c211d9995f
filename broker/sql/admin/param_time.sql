-- queen.param_time: a timestamp parameter of an administrative call.
--
-- called by  the functions behind broker/src/api/sql_endpoint.c
-- in         p_args: an object with the parameter as a string, from sql_endpoint.c, or its "body"
-- out        the time as PostgreSQL reads it (RFC 3339, a date, "now", ...); the fallback if it is missing
-- raises     QN001 if it is not a time
create or replace function queen.param_time(p_args jsonb, p_name text, p_fallback timestamptz)
returns timestamptz
language plpgsql stable
as $$
begin
    if jsonb_typeof(p_args -> p_name) is distinct from 'string' then
        if p_args ->> p_name is null then
            return p_fallback;
        end if;
        raise exception using errcode = 'QN001', message = format('%s must be a timestamp', p_name);
    end if;
    return (p_args ->> p_name)::timestamptz;
exception when datetime_field_overflow or invalid_datetime_format or invalid_text_representation then
    raise exception using errcode = 'QN001', message = format('%s must be a timestamp', p_name);
end
$$;
