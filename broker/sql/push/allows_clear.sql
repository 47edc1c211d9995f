-- queen.allows_clear: whether a broker without a key may store messages of this lane in clear although its queue has encryptionEnabled.
--
-- called by  queen.push_segments, queen.schedule_messages, for such messages only
-- out        the option allowUnencrypted of the queue; null if the lane is gone
create or replace function queen.allows_clear(p_lane bigint)
returns boolean
language sql stable
as $$
    select q.allow_unencrypted from queen.lanes l join queen.queues q on q.id = l.queue_id where l.num = p_lane
$$;
