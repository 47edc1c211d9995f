-- queen.fill_retry_policy: a retry policy with the defaults of what it leaves open.
--
-- called by  queen.retry_policy_of; queen.configure_queue and queen.get_queue for their answers
-- in         p_policy as queen.check_retry_policy lets it pass, or null
-- out        null for null.  Without a strategy an inline policy says nothing about delays: the queue's retryDelay rules then, and
--            without maxAttempts its retryLimit
create or replace function queen.fill_retry_policy(p_policy jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
    v_mode     text := coalesce(p_policy ->> 'mode', 'inline');
    -- A part may have named "list" without its delays having been given anywhere.
    v_strategy text := case when p_policy ->> 'strategy' = 'list' and not p_policy ? 'delays' then 'fibonacci'
                            else coalesce(p_policy ->> 'strategy', 'fibonacci') end;
    v_defaults jsonb := '{}';
begin
    if p_policy is null then
        return null;
    end if;
    if v_mode = 'scheduled' or p_policy ? 'strategy' then
        v_defaults := jsonb_build_object(
            'base', 10,
            -- As in the seed: the first retry does not race the recovery from the failure.
            'floor', case when v_strategy = 'fibonacci' then least(10, coalesce((p_policy ->> 'base')::numeric, 10)) else 0 end,
            'cap', greatest(604800, (p_policy ->> 'floor')::numeric), 'jitter', 0);
    end if;
    if v_mode = 'scheduled' then
        v_defaults := v_defaults || '{"maxAttempts":29}';
    end if;
    return v_defaults || p_policy || jsonb_build_object('mode', v_mode)
        || case when v_defaults ? 'base' then jsonb_build_object('strategy', v_strategy) else '{}' end;
end
$$;
