-- queen.option_bool: a boolean option of a configure request.
--
-- called by  queen.configure_queue
-- out        the value, also if it is the text "true" or "false"; p_default if it is absent or null
-- raises     QN001, naming the option, for anything else
create or replace function queen.option_bool(p_options jsonb, p_name text, p_default boolean)
returns boolean
language plpgsql immutable
as $$
begin
    case
        when p_options ->> p_name is null then
            return p_default;
        when jsonb_typeof(p_options -> p_name) in ('boolean', 'string')
         and p_options ->> p_name in ('true', 'false') then
            return (p_options ->> p_name)::boolean;
        else
            raise exception 'option % must be true or false', p_name using errcode = 'QN001';
    end case;
end
$$;
