-- queen.preview_seek: GET /api/v1/consumer-groups/:group/queues/:queue/seek.
--
-- needs: param_time, strict_bool, cursor_at, latest_state, iso_ms
-- called by  broker/src/api/admin/groups.c
-- in         p_args: group, queue; toEnd (wins) or timestamp, as in a seek
-- out        200 {"partitions","partitionsBack","partitionsAhead","again","skipped","waiting","leases"}: what a seek would do: how many
--            messages the group would receive again, would never receive, and would have to process afterwards. Deleted messages
--            are counted as well, and a seek moves nothing of a group that is unknown. 404: no such queue
-- raises     QN001 if both are missing, or the timestamp is invalid
create or replace function queen.preview_seek(p_args jsonb)
returns table (status int, answer json)
language plpgsql
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    v_now  timestamptz := clock_timestamp();
    v_end  boolean := queen.strict_bool(p_args, 'toEnd', false);
    v_time timestamptz := queen.param_time(p_args, 'timestamp', null);
    v_id   uuid := (select q.id from queen.queues q where q.name = p_args ->> 'queue');
begin
    if not v_end and v_time is null then
        raise exception using errcode = 'QN001', message = 'toEnd or timestamp must be given';
    end if;
    if v_id is null then
        status := 404;
        answer := json_build_object('error', 'Queue not found');
        return next;
        return;
    end if;
    status := 200;
    select json_build_object(
               'partitions', count(*), 'partitionsBack', count(*) filter (where m.new < m.old),
               'partitionsAhead', count(*) filter (where m.new > m.old),
               'again', coalesce(sum(greatest(m.old - m.new, 0)), 0), 'skipped', coalesce(sum(greatest(m.new - m.old, 0)), 0),
               'waiting', coalesce(sum(greatest(m.last - m.new, 0)), 0), 'leases', count(*) filter (where m.leased),
               'seekToEnd', v_end, 'targetTimestamp', case when not v_end then queen.iso_ms(v_time) end)
      into answer
      from (select h.last, greatest(coalesce(st.cursor_seq, 0), h.first - 1) as old, coalesce(st.lease_until > v_now, false) as leased,
                   case when v_end then h.last else greatest(queen.cursor_at(l.num, v_time), h.first - 1) end as new
              from queen.lanes l
              left join queen.consumers c on c.lane = l.num and c.grp = p_args ->> 'group'
              left join lateral queen.latest_state(c.num) st on true
             cross join lateral (
                   select coalesce((select s.first_seq + greatest(s.count, 1) - 1 from queen.segments s
                                     where s.lane = l.num order by s.first_seq desc limit 1), 0) as last,
                          coalesce((select s.first_seq from queen.segments s
                                     where s.lane = l.num order by s.first_seq limit 1), 1) as first) h
             where l.queue_id = v_id) m;
    return next;
end
$$;
