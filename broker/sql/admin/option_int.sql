-- queen.option_int: a whole-number option of a configure request.
--
-- called by  queen.configure_queue
-- out        the value, also if it is text; p_default if it is absent or null
-- raises     QN001, naming the option, for anything else, for less than p_least and for more than 32 bits
create or replace function queen.option_int(p_options jsonb, p_name text, p_default int, p_least int)
returns int
language plpgsql immutable
as $$
declare
    v_text  text := btrim(p_options ->> p_name);
    v_value numeric;
begin
    if v_text is null then
        return p_default;
    elsif jsonb_typeof(p_options -> p_name) in ('number', 'string') and v_text ~ '^[+-]?[0-9]{1,15}(\.0{1,15})?$' then
        v_value := v_text::numeric;
        if v_value between p_least and 2147483647 then
            return v_value::int;
        end if;
    end if;
    raise exception 'option % must be a whole number%', p_name,
        case when p_least >= 0 then ' from ' || p_least || ' to 2147483647' else ' of 32 bits' end
        using errcode = 'QN001';
end
$$;
