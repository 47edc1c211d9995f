-- queen.list_owners: GET /api/v1/consumer-groups/:group/queues/:queue/owners.
--
-- needs: latest_state, iso_ms
-- called by  broker/src/api/admin/owners.c
-- out        200: every partition of the queue with its owner (null: none; an owner whose claim has expired is included, with
--            expired), epoch, how long it has had no owner, checkpoint and lag. 404: no such queue, or no fixed set of partitions
create or replace function queen.list_owners(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_group text := p_args ->> 'group';
    v_now   timestamptz := clock_timestamp();
    v_queue queen.queues%rowtype;
begin
    select * into v_queue from queen.queues q where q.name = p_args ->> 'queue' and q.partitions > 0;
    if not found then
        status := 404;
        answer := json_build_object('error', 'there is no queue of that name with a fixed set of partitions');
        return next;
        return;
    end if;
    status := 200;
    select json_build_object('queue', v_queue.name, 'consumerGroup', v_group, 'partitions', v_queue.partitions,
                             'now', queen.iso_ms(v_now), 'owners', coalesce(json_agg(json_build_object(
               'partition', l.name, 'partitionId', l.id, 'owner', o.owner, 'epoch', coalesce(o.epoch, 0),
               'since', queen.iso_ms(o.since), 'expiresAt', queen.iso_ms(o.expires_at),
               'expired', coalesce(o.expires_at <= v_now, true),
               'freeMs', case when o.expires_at > v_now then null
                              else greatest(extract(epoch from v_now - coalesce(o.expires_at, v_queue.created_at)) * 1000, 0)::bigint end,
               'wantedBy', o.wanted_by, 'wantedAt', queen.iso_ms(o.wanted_at),
               'checkpoint', coalesce(o.checkpoint, st.cursor_seq),
               'checkpointAt', queen.iso_ms(coalesce(o.checkpoint_at, st.last_at)),
               'lag', greatest(head.last - coalesce(st.cursor_seq, head.first - 1), 0)) order by l.name::int), '[]'))
      into answer
      from queen.lanes l
      left join queen.owners o on o.lane = l.num and o.grp = v_group
      left join queen.consumers c on c.lane = l.num and c.grp = v_group
      left join lateral queen.latest_state(c.num) st on true
      cross join lateral (
           select coalesce((select s.first_seq + greatest(s.count, 1) - 1 from queen.segments s
                             where s.lane = l.num order by s.first_seq desc limit 1), 0) as last,
                  coalesce((select s.first_seq from queen.segments s
                             where s.lane = l.num order by s.first_seq limit 1), 1) as first) head
     where l.queue_id = v_queue.id;
    return next;
end
$$;
