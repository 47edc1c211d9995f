-- queen.option_rate: a number of a configure request that may have decimals and is not negative.
--
-- called by  queen.configure_queue
-- out        the value, also if it is text; 0 if it is absent or null
-- raises     QN001, naming the option, for anything else, and for a positive value under 0.001 or above 1000000
create or replace function queen.option_rate(p_options jsonb, p_name text)
returns double precision
language plpgsql immutable
as $$
declare
    v_text  text := btrim(p_options ->> p_name);
begin
    if v_text is null then
        return 0;
    elsif jsonb_typeof(p_options -> p_name) in ('number', 'string') and v_text ~ '^\+?[0-9]{1,10}(\.[0-9]{1,15})?$'
          and (v_text::numeric = 0 or v_text::numeric between 0.001 and 1000000) then
        return v_text::double precision;
    end if;
    raise exception 'option % must be 0 or a number from 0.001 to 1000000', p_name using errcode = 'QN001';
end
$$;
