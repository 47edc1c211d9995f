-- queen.timeline_takes: whether a request for a timeline is about messages of this lane.
--
-- called by  queen.timeline_messages
-- in         p_args: queue, partition (of it); neither: any lane
create or replace function queen.timeline_takes(p_args jsonb, p_lane bigint)
returns boolean
language sql stable
as $$
    select not p_args ? 'queue'
        or exists (select from queen.lanes l join queen.queues q on q.id = l.queue_id
                    where l.num = p_lane and q.name = p_args ->> 'queue'
                      and (not p_args ? 'partition' or l.name = p_args ->> 'partition'))
$$;
