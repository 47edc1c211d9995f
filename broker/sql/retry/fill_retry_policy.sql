-- queen.fill_retry_policy: a retry policy completed with defaults.
--
-- called by  queen.retry_policy_of; queen.configure_queue and queen.get_queue for their answers
-- in         p_policy: accepted by queen.check_retry_policy, or null
-- out        null for null. An inline policy without a strategy has no delays: the queue's retryDelay applies. Without
--            maxAttempts the queue's retryLimit applies
create or replace function queen.fill_retry_policy(p_policy jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
    v_mode     text := coalesce(p_policy ->> 'mode', 'inline');
    -- The policy of an event type or message may name "list" although no policy contains delays.
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
            -- As in the seed: a first retry must not compete with the recovery from the failure.
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
