-- queen.start_cursor: where a group begins on a lane that it has not seen yet.
--
-- A subscription recorded for this very partition wins over one for the whole queue, that over
-- one made by namespace or task; none: the beginning.  With a start time T the cursor is the last message created
-- before T, so what was created at T or later is delivered.
-- needs: cursor_at
create or replace function queen.start_cursor(p_lane bigint, p_group text)
returns bigint
language plpgsql stable
as $$
declare
    v_from timestamptz;
    v_seq  bigint;
begin
    if p_group <> '__QUEUE_MODE__' then
        select m.subscription_timestamp into v_from
          from queen.lanes l
          join queen.queues q on q.id = l.queue_id
          join queen.consumer_groups_metadata m on m.consumer_group = p_group
           and ((m.queue_name = q.name and m.partition_name in ('', l.name))
                or (m.queue_name = '' and m.partition_name = ''
                    and m.namespace in ('', q.namespace) and m.task in ('', q.task)))
         where l.num = p_lane
         order by m.partition_name = '', m.queue_name = '', m.created_at
         limit 1;
        if v_from is not null then
            v_seq := queen.cursor_at(p_lane, v_from - interval '1 microsecond');
        end if;
    end if;
    return coalesce(v_seq, 0);
end
$$;
