-- queen.fill_retry_policy: a retry policy with the defaults of what it leaves open.
--
-- called by  queen.retry_policy_of; queen.configure_queue and queen.get_queue for their answers
-- in         p_policy as queen.check_retry_policy lets it pass, or null
-- out        null for null.  Without a strategy an inline policy says nothing about delays: the queue's retryDelay rules then, and
--            without maxAttempts its retryLimit
create or replace function queen.fill_retry_policy(p_policy jsonb)
returns jsonb
language sql immutable parallel safe
as $$
    select case when p.mode = 'inline' and not p_policy ? 'strategy' then '{}'::jsonb
                else jsonb_build_object(
                     'strategy', p.strategy, 'base', 10,
                     -- As in the seed: the first retry does not race the recovery from the failure.
                     'floor', case when p.strategy = 'fibonacci'
                                   then least(10, coalesce((p_policy ->> 'base')::numeric, 10)) else 0 end,
                     'cap', greatest(604800, (p_policy ->> 'floor')::numeric), 'jitter', 0)
                end
           || case when p.mode = 'scheduled' then '{"maxAttempts":29}'::jsonb else '{}' end
           || jsonb_build_object('mode', p.mode) || p_policy
      from (select coalesce(p_policy ->> 'mode', 'inline') as mode,
                   -- A part may have named "list" without its delays having been given anywhere.
                   case when p_policy ->> 'strategy' = 'list' and not p_policy ? 'delays' then 'fibonacci'
                        else coalesce(p_policy ->> 'strategy', 'fibonacci') end as strategy) p
     where p_policy is not null
$$;
