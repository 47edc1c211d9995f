-- queen.retry_delay: the delay in seconds between the failure of an attempt and the next attempt.
--
-- called by  queen.fail_messages, queen.settle
-- needs: fill_retry_policy
-- in         p_policy: any that queen.check_retry_policy accepts; p_attempt: 1 for the first delivery; p_random: 0 to 1, for the jitter
--            (0.5: none)
--
-- A pure function, so that the delays of a policy can be looked up, plotted and tested. Jitter is a fraction: the delay is spread by it
-- in both directions. floor and cap limit the result.
create or replace function queen.retry_delay(p_policy jsonb, p_attempt int, p_random double precision default 0.5)
returns double precision
language plpgsql immutable strict parallel safe
as $$
declare
    -- A partial policy gets the defaults of the scheduled mode.
    v_full  jsonb := case when p_policy ?& array['base', 'floor', 'cap', 'jitter'] then p_policy
                          else queen.fill_retry_policy(p_policy || '{"mode":"scheduled"}') end;
    v_nth   int := greatest(p_attempt, 1);
    v_base  double precision := v_full ->> 'base';
    v_floor double precision := v_full ->> 'floor';
    v_cap   double precision := v_full ->> 'cap';
    v_delay double precision;
    v_this  double precision := 1;
    v_next  double precision := 1;
begin
    case v_full ->> 'strategy'
        when 'fixed' then
            v_delay := v_base;
        when 'exponential' then
            v_delay := v_base * power(2::double precision, least(v_nth, 60) - 1);
        when 'list' then
            -- The last delay also applies to all later attempts.
            v_delay := v_full -> 'delays' ->> least(v_nth, jsonb_array_length(v_full -> 'delays')) - 1;
        else
            for i in 2 .. v_nth loop
                exit when v_this * v_base >= v_cap;
                select v_next, v_this + v_next into v_this, v_next;
            end loop;
            v_delay := v_this * v_base;
    end case;
    -- Limited before and after, so that a delay far above the cap is spread below the cap instead of being equal to it.
    v_delay := least(v_delay, v_cap) * (1 + (v_full ->> 'jitter')::double precision * (2 * p_random - 1));
    return greatest(v_floor, least(v_delay, v_cap));
end
$$;
