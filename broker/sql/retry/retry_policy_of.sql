-- queen.retry_policy_of: the retry policy that holds for a message.
--
-- needs: fill_retry_policy
-- called by  queen.fail_message, queen.timeline
-- in         p_policy: of its queue, null when there is none; p_meta: the message's further fields
-- out        the queue's, over it that of the event type (eventType, else the type of a CloudEvent), over that the message's own;
--            filled; null when nobody says anything
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
