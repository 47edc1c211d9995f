-- queen.sweep: remove messages that are too old, one bounded step of a pass.
--
-- needs: note_ages, rows_stuck, forget_segments, slowest_cursor
-- called by  broker/src/broker/chores.c (call "sweep"); brokers may call it at the same time and share the lanes
-- in         p_evict: by ttl and maxWaitTimeSeconds; else by retentionSeconds and completedRetentionSeconds
--            p_limit: maximum number of segments to remove; p_lanes: maximum number of lanes to examine
--            p_after_us, p_after_lane: where the last step of this pass ended; 0, 0 to begin
--            p_interval_ms: time until the caller's next pass
-- out        a row with queue_name null: where this step ended, and more: call again; and per queue and
--            type (as in queen.retention_history) the number of removed messages. Type 'paused' in the first row: messages were removed
--            only from queues with a maxSize, because vacuum cannot reclaim the rows removed before; removed is their number. (In
--            such a queue old messages would otherwise use up maxSize, and pushes would be rejected.)
-- locks      rows of queen.lane_due, skipping those of other sweeps; lanes against deletion, skipping those being
--            deleted. A lane that becomes empty, or of which no message will become due any more, is locked like a push. If a
--            push has locked it, it stays due. Other pushes do not wait
--
-- Removes whole segments, always from the front of the lane, so that sequence numbers stay without gaps:
--   ttl, retention          all older segments
--   completed_retention     older segments that every group of the lane has consumed, if there is a group
--   max_wait_time_eviction  all older segments, if one of them is not consumed by every group. Consumed segments before it are
--                           removed with it, because otherwise there would be a gap
-- A lane that becomes empty keeps a marker, a segment of count 0 at the last sequence number, so that
-- numbering never starts again below a cursor.
--
-- A lane is examined again when its oldest message will be due. A message that is old enough and only waits for
-- its consumers is examined less and less often: after a quarter of the time that it has waited, at least every hour.
create or replace function queen.sweep(
    p_evict boolean, p_limit int, p_lanes int, p_after_us bigint, p_after_lane bigint, p_interval_ms bigint)
returns table (queue_name text, type text, removed bigint, after_us bigint, after_lane bigint, more boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_soon    timestamptz := v_now + p_interval_ms * interval '1 millisecond';
    v_col     text := case when p_evict then 'evict_at' else 'retain_at' end;
    v_always  text := case when p_evict then 'ttl' else 'retention' end;
    v_maybe   text := case when p_evict then 'max_wait_time_eviction' else 'completed_retention' end;
    v_left    int := p_limit;
    v_seen    int := 0;
    v_names   text[] := '{}';
    v_types   text[] := '{}';
    v_counts  bigint[] := '{}';
    d         record;   -- a due lane
    l         record;   -- its options, as times
    s         record;   -- a segment of it
    v_front   record;   -- the first segment that stays
    v_last    record;   -- the last segment to remove
    v_before  record;   -- the one before that
    v_slowest bigint;   -- the lowest cursor of all groups
    v_evict   boolean;  -- a group has not consumed a message that is too old
    v_n       bigint[]; -- messages to remove: by age alone, and by age and consumption
    v_segs    int[];    -- and segments
    v_full    boolean;  -- the limit was reached
    v_busy    boolean;  -- a push has locked the lane
    v_due     timestamptz;
    v_stuck   bigint;   -- dead rows that vacuum cannot reclaim
begin
    if p_after_us = 0 then
        perform queen.note_ages(false);
    end if;
    more := false;
    after_us := p_after_us;
    after_lane := p_after_lane;

    v_stuck := greatest(queen.rows_stuck('queen.segments'), queen.rows_stuck('queen.message_keys'));
    if v_stuck > 0 then
        type := 'paused';
        removed := v_stuck;
        if not exists (select from queen.queues q where q.ages and q.limited) then
            return next;
            return;
        end if;
    end if;

    for d in execute format(
        'select lane, %1$I as due from queen.lane_due
          where %1$I <= $1 and (%1$I, lane) > (timestamptz ''epoch'' + $2 * interval ''1 microsecond'', $3)
          order by %1$I, lane limit $4 for update skip locked', v_col)
        using v_now, p_after_us, p_after_lane, p_lanes
    loop
        if v_left <= 0 then
            more := true;
            exit;
        end if;
        v_seen := v_seen + 1;

        select l.num, l.id, q.name, q.limited,
               case when p_evict then case when q.ttl_acts then q.ttl end
                    when q.retention_enabled then nullif(q.retention_seconds, 0) end * interval '1 second' as age,
               case when p_evict then nullif(q.max_wait_time_seconds, 0)
                    when q.retention_enabled then nullif(q.completed_retention_seconds, 0) end * interval '1 second' as wait
          into l
          from queen.lanes l join queen.queues q on q.id = l.queue_id
         where l.num = d.lane
           for key share of l skip locked;
        if l.num is null and not exists (select from queen.lanes k where k.num = d.lane) then
            delete from queen.lane_due where lane = d.lane;
        end if;
        if l.num is null or (v_stuck > 0 and not l.limited) then
            after_us := extract(epoch from d.due) * 1000000;
            after_lane := d.lane;
            continue; -- it stays due
        end if;

        v_slowest := null;
        v_evict := false;
        if l.wait is not null then
            v_slowest := queen.slowest_cursor(l.num);
            if p_evict then
                -- Null if every group has consumed everything.
                select f.created_at < v_now - l.wait into v_evict
                  from queen.segments f
                 where f.lane = l.num and f.count > 0 and f.first_seq + f.count - 1 > coalesce(v_slowest, 0)
                   and f.first_seq >= coalesce((select p.first_seq from queen.segments p
                                                 where p.lane = l.num and p.first_seq <= v_slowest + 1
                                                 order by p.first_seq desc limit 1), 0)
                 order by f.first_seq limit 1;
            end if;
        end if;

        v_front := null;
        v_last := null;
        v_before := null;
        v_n := '{0,0}';
        v_segs := '{0,0}';
        v_full := false;
        v_busy := false;
        for s in
            select g.first_seq, g.count, g.created_at from queen.segments g
             where g.lane = l.num order by g.first_seq limit v_left + 1
        loop
            continue when s.count = 0;
            v_front := s;
            if s.created_at < v_now - l.age then
                v_n[1] := v_n[1] + s.count;
                v_segs[1] := v_segs[1] + 1;
            elsif s.created_at < v_now - l.wait
                  and (case when p_evict then v_evict else s.first_seq + s.count - 1 <= v_slowest end) then
                v_n[2] := v_n[2] + s.count;
                v_segs[2] := v_segs[2] + 1;
            else
                exit;
            end if;
            v_front := null;
            v_before := v_last;
            v_last := s;
            v_left := v_left - 1;
            v_full := v_left <= 0;
            exit when v_full;
        end loop;

        if v_last is not null then
            if not exists (select from queen.segments g where g.lane = l.num and g.first_seq > v_last.first_seq) then
                -- The lane becomes empty: no session may append while its marker is created.
                perform from queen.lanes k where k.num = l.num for no key update skip locked;
                v_busy := not found;
            end if;
            if v_busy then
                if v_last.created_at < v_now - l.age then
                    v_n[1] := v_n[1] - v_last.count;
                    v_segs[1] := v_segs[1] - 1;
                else
                    v_n[2] := v_n[2] - v_last.count;
                    v_segs[2] := v_segs[2] - 1;
                end if;
                v_last := v_before;
            end if;
        end if;
        if v_last is not null then
            perform queen.forget_segments(l.num, v_last.first_seq);
            if not exists (select from queen.segments g where g.lane = l.num and g.first_seq > v_last.first_seq) then
                insert into queen.segments (lane, first_seq, created_at, count, keys, body)
                values (l.num, v_last.first_seq + v_last.count - 1, v_last.created_at, 0, '', '\x01');
            end if;
        end if;
        for i in 1 .. 2 loop
            if v_n[i] > 0 then
                insert into queen.retention_history (partition_id, messages_deleted, segments_deleted, retention_type)
                values (l.id, v_n[i], v_segs[i], case i when 1 then v_always else v_maybe end);
                v_names := v_names || l.name::text;
                v_types := v_types || case i when 1 then v_always else v_maybe end;
                v_counts := v_counts || v_n[i];
            end if;
        end loop;

        if v_full and not v_busy then
            more := true; -- starting with this lane
            exit;
        end if;
        after_us := extract(epoch from d.due) * 1000000;
        after_lane := d.lane;
        continue when v_busy; -- it stays due

        v_due := null;
        if v_front is not null then
            v_due := v_front.created_at + l.age;
            if p_evict then
                select least(v_due, f.created_at + l.wait) into v_due
                  from (select 1) one
                  left join lateral (select f.created_at from queen.segments f
                                      where f.lane = l.num and f.count > 0
                                        and f.first_seq + f.count - 1 > coalesce(v_slowest, 0)
                                        and f.first_seq >= coalesce((select p.first_seq from queen.segments p
                                                 where p.lane = l.num and p.first_seq <= v_slowest + 1
                                                 order by p.first_seq desc limit 1), 0)
                                      order by f.first_seq limit 1) f on true;
            else
                v_due := least(v_due, case
                    when v_front.created_at + l.wait > v_now then v_front.created_at + l.wait
                    else v_now + least((v_now - v_front.created_at - l.wait) / 4, interval '1 hour') end);
            end if;
        end if;
        if v_due is null and (l.age is not null or l.wait is not null) then
            -- Remove the lane from the table. A push that commits before that finds its lane there and does not add it
            -- (queen.note_ages). So no push may be in progress, and none may have happened since the lane was examined.
            perform from queen.lanes k where k.num = l.num for no key update skip locked;
            continue when not found;
            select g.first_seq, g.count into v_last
              from queen.segments g where g.lane = l.num order by g.first_seq desc limit 1;
            continue when v_last.count > 0
                          and (v_front is not null and v_last.first_seq + v_last.count - 1 <= v_slowest) is not true;
        end if;
        -- A lane that will be due at the next pass stays unchanged, so that lanes with steady traffic cause no updates.
        if v_due is null or v_due > v_soon then
            if p_evict then
                update queen.lane_due set evict_at = v_due where lane = d.lane;
            else
                update queen.lane_due set retain_at = v_due where lane = d.lane;
            end if;
            if v_due is null then
                delete from queen.lane_due where lane = d.lane and evict_at is null and retain_at is null;
            end if;
        end if;
    end loop;
    more := more or v_seen >= p_lanes;
    return next;

    return query
    select u.name, u.type, sum(u.count)::bigint, null::bigint, null::bigint, null::boolean
      from unnest(v_names, v_types, v_counts) u(name, type, count)
     group by u.name, u.type order by u.name, u.type;
end
$$;
