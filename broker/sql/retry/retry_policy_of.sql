-- queen.retry_policy_of: the retry policy that applies to a message.
--
-- needs: fill_retry_policy
-- called by  queen.fail_messages, queen.timeline
-- in         p_policy: of its queue, or null; p_meta: the further fields of the message
-- out        the policy of the queue, overridden by that of the event type (eventType, else the type of a CloudEvent), overridden by that of
--            the message, with defaults filled in; null if there is none
create or replace function queen.retry_policy_of(p_policy jsonb, p_meta jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
    if p_policy is null and (p_meta ? 'retryPolicy') is not true then
        return null;
    end if;
    return queen.fill_retry_policy(
        coalesce(p_policy - 'byType', '{}')
        || coalesce(p_policy -> 'byType' -> coalesce(p_meta ->> 'eventType', p_meta -> 'cloudEvent' ->> 'type'), '{}')
        || coalesce(p_meta -> 'retryPolicy', '{}'));
end
$$;
