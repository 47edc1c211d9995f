-- queen.retry_delay: the delay in seconds between the failure of an attempt and the next attempt.
--
-- called by  queen.fail_messages, queen.settle
-- in         p_policy: filled (queen.fill_retry_policy); p_attempt: 1 for the first delivery; p_random: 0 to 1, for the jitter
--            (0.5: none)
--
-- A pure function, so that the delays of a policy can be looked up, plotted and tested. Jitter is a fraction: the delay is spread by it
-- in both directions. floor and cap limit the result.
create or replace function queen.retry_delay(p_policy jsonb, p_attempt int, p_random double precision default 0.5)
returns double precision
language plpgsql immutable strict parallel safe
as $$
declare
    v_base  double precision := p_policy ->> 'base';
    v_floor double precision := p_policy ->> 'floor';
    v_cap   double precision := p_policy ->> 'cap';
    v_delay double precision;
    v_this  double precision := 1;
    v_next  double precision := 1;
begin
    case p_policy ->> 'strategy'
        when 'fixed' then
            v_delay := v_base;
        when 'exponential' then
            v_delay := v_base * power(2::double precision, least(p_attempt, 60) - 1);
        when 'list' then
            -- The last delay also applies to all later attempts.
            v_delay := p_policy -> 'delays' ->> least(p_attempt, jsonb_array_length(p_policy -> 'delays')) - 1;
        else
            for i in 2 .. p_attempt loop
                exit when v_this * v_base >= v_cap;
                select v_next, v_this + v_next into v_this, v_next;
            end loop;
            v_delay := v_this * v_base;
    end case;
    -- Limited before and after, so that a delay far above the cap is spread below the cap instead of being equal to it.
    v_delay := least(v_delay, v_cap) * (1 + (p_policy ->> 'jitter')::double precision * (2 * p_random - 1));
    return greatest(v_floor, least(v_delay, v_cap));
end
$$;
