-- queen.retried_groups: the groups that will be given a failed message again, or that have it under a lease.
--
-- needs: timeline_groups, transaction_key
-- called by  queen.newest_messages, queen.get_message, for messages that have failed. The position of a group is behind a
--            message that waits for its retry, so the position alone does not say that the group has completed it
-- in         p_lane, p_seq: where the message was pushed to
create or replace function queen.retried_groups(p_lane bigint, p_seq bigint, p_message_id uuid, p_transaction_id text)
returns table (grp text, leased boolean)
language sql stable
as $$
    select g.grp, g.status = 'LEASED'
      from queen.timeline_groups(p_lane, p_seq, p_message_id, queen.transaction_key(p_transaction_id), p_transaction_id, null) g
     where g.status in ('RETRYING', 'LEASED')
$$;
