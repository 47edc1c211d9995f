-- queen.push_segments: append packed segments to their lanes, with exact deduplication.
--
-- numbers:   status seg_status, v_status seg_status
-- needs: allows_clear, message_id, key_position, queue_pending, scheduled_duplicates
-- called by  broker/src/broker/push/push.c (call "push"); queen.push_correlated, queen.push_items_now, queen.push_whole, queen.retry_message
-- in         p_origin    the process that pushes, for queen.changes
--            p_whole     true: one request; store all of it or nothing
--            p_lanes     the number of different lanes
--            p_lane..p_body  one element per segment, in the order to store them
--                        p_last: first_seq of an earlier segment of the lane (a hint that bounds the probe and may be wrong;
--                        0: none; -1: none, and messages in clear may be stored in clear; -2: none, and the caller cannot
--                        encrypt: they may be stored in clear if the queue allows it)
--                        p_nth, p_before: how many segments and messages of this call precede it in its lane
--            p_plain_*   keys that are not UUIDv7: segment (1-based), position, key
-- out        status 0 stored: lane, first_seq, created_at; these rows are in the order of p_lane
--            and, for segments that were not stored, seg (1-based):
--                   1 contains duplicates: one row for each (pos, dup_id)
--                   2 not stored, because another segment of the lane or request was not stored; send again
--                   3 the lane is gone: resolve the name again
--                   4 the queue is full (maxSize)
--                   5 the lane is limited: send each request by itself, with p_whole
--                   6 the lane is sealed and the segment is not: encrypt it (not for SQL sessions, which cannot encrypt)
--                   7 the same, but the caller cannot (p_last -2), and the queue does not allow messages in clear
-- locks      with p_whole, the queues of limited lanes in id order; then lanes in num order, as deleting a queue does.
--            A broker (p_origin is not 0) waits at most 100 ms for each of them. Then the call fails with 55P03, and the
--            broker calls queen.locked_lanes to find the lanes that it must keep out of its batches
create or replace function queen.push_segments(
    p_origin int, p_whole boolean, p_lanes int,
    p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[])
returns table (lane bigint, first_seq bigint, created_at timestamptz,
               seg int, status int2, pos int, dup_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_here    bigint[];      -- lanes that exist
    v_limited bigint[];      -- those of queues with a maxSize
    v_sealed  bigint[];      -- those of queues with encryptionEnabled
    v_waiting bigint[];      -- those that have or had scheduled messages
    v_clear   bigint[];      -- sealed lanes that would get messages in clear
    v_no_key  bigint[];      -- the same, from a caller that cannot encrypt
    v_full    uuid[];        -- queues without room for the messages of this call
    v_now     timestamptz;
    v_status  int2[];        -- per segment; null if all can be stored
    v_near    int[];         -- segments that may contain duplicates ...
    v_near_at bigint[];      -- ... and the stored segment to compare with
    v_dup_seg int[];
    v_dup_pos int[];
    v_dup_id  uuid[];
    v_more    record;
    v_timeout text;          -- lock_timeout of the session
    v_set     text;          -- assigned, because that is cheaper than perform
begin
    if p_origin <> 0 then
        v_timeout := current_setting('lock_timeout');
        v_set := set_config('lock_timeout', '100ms', true);
    end if;
    if p_whole then
        perform q.id from queen.queues q
          where q.id in (select l.queue_id from queen.lanes l where l.num = any (p_lane) and l.limited)
          order by q.id for no key update;
    end if;
    select array_agg(l.num), array_agg(l.num) filter (where l.limited), array_agg(l.num) filter (where l.sealed),
           array_agg(l.num) filter (where l.scheduling)
      into v_here, v_limited, v_sealed, v_waiting
      from (select num, limited, sealed, scheduling from queen.lanes
             where num = any (p_lane) order by num for no key update) l;
    if p_origin <> 0 then
        v_set := set_config('lock_timeout', v_timeout, true);
    end if;
    -- After the locks, so that times rise with the sequence numbers.
    v_now := clock_timestamp();
    if v_sealed is not null and p_origin <> 0 then
        -- A process seals all messages of a lane or none, so the flags of the first are enough (docs/internals/segment-format.md).
        select array_agg(u.lane), array_agg(u.lane) filter (where u.last = -2) into v_clear, v_no_key
          from unnest(p_lane, p_last, p_body) u(lane, last, body)
         where u.lane = any (v_sealed) and get_byte(u.body, 1) & 8 = 0
           and (u.last >= 0 or u.last = -2 and not queen.allows_clear(u.lane));
    end if;

    -- Equal ids contain equal times, so only segments around that time can contain a duplicate. (offset 0, here and
    -- below: a plan made when the tables were empty must not become a scan of all of them.)
    select array_agg(u.seg::int), array_agg(s.first_seq)
      into v_near, v_near_at
      from unnest(p_lane, p_key_min, p_key_max) with ordinality u(lane, key_min, key_max, seg)
      cross join lateral (
           select s.first_seq from queen.segments s
            where s.lane = u.lane and s.key_max >= u.key_min and s.key_max <= u.key_max + 1000
              and s.key_min <= u.key_max offset 0) s;

    if v_near is not null then
        select array_agg(u.seg), array_agg(m.pos),
               array_agg(queen.message_id(s.created_at, m.at, s.lane))
          into v_dup_seg, v_dup_pos, v_dup_id
          from unnest(v_near, v_near_at) u(seg, at)
          cross join lateral (select * from queen.segments s
                               where s.lane = p_lane[u.seg] and s.first_seq = u.at offset 0) s
          cross join lateral (select p_keys[u.seg]) n(keys)
          cross join lateral (
               select i as pos, queen.key_position(s.keys, k.key) as at
                 from generate_series(0, length(n.keys) / 16 - 1) i
                 cross join lateral (select substr(n.keys, i * 16 + 1, 16)) k(key)
                where position(k.key in s.keys) > 0) m
         where m.at is not null;
    end if;

    if cardinality(p_plain_key) > 0 then
        select array_agg(u.seg) as seg, array_agg(u.pos) as pos,
               array_agg(queen.message_id(s.created_at, (k.seq - s.first_seq)::int, k.lane)) as id
          into v_more
          from unnest(p_plain_seg, p_plain_pos, p_plain_key) u(seg, pos, key)
          cross join lateral (select * from queen.message_keys k
                               where k.lane = p_lane[u.seg] and k.key = u.key offset 0) k
          join lateral (select s.first_seq, s.created_at from queen.segments s
                         where s.lane = k.lane and s.first_seq <= k.seq
                         order by s.first_seq desc limit 1) s on true
         where p_lane[u.seg] = any (v_waiting) is not true;
        v_dup_seg := v_dup_seg || v_more.seg;
        v_dup_pos := v_dup_pos || v_more.pos;
        v_dup_id := v_dup_id || v_more.id;
    end if;

    if v_waiting is not null then
        select array_agg(d.seg) as seg, array_agg(d.pos) as pos, array_agg(d.id) as id
          into v_more
          from queen.scheduled_duplicates(v_waiting, p_lane, p_keys) d;
        v_dup_seg := v_dup_seg || v_more.seg;
        v_dup_pos := v_dup_pos || v_more.pos;
        v_dup_id := v_dup_id || v_more.id;
    end if;

    -- The rare cases. The common case leaves v_status null and skips this block.
    if v_dup_seg is not null or (v_limited is not null and not p_whole) or v_clear is not null
       or cardinality(v_here) is distinct from p_lanes then
        select array_agg(case when u.lane = any (v_here) is not true then 3
                              when not p_whole and u.lane = any (v_limited) then 5
                              when u.lane = any (v_no_key) then 7
                              when u.lane = any (v_clear) then 6
                              when u.seg = any (v_dup_seg) then 1
                              when exists (select from unnest(v_dup_seg) d
                                            where d < u.seg and p_lane[d] = u.lane) then 2
                              else 0 end::int2 order by u.seg)
          into v_status
          from unnest(p_lane) with ordinality u(lane, seg);
        -- A request with a limited lane must not be stored in part, and this function cannot see
        -- which segments belong together.
        if p_whole or v_limited is not null then
            v_status := array_replace(v_status, 0::int2, 2::int2);
        end if;
    elsif v_limited is not null then
        select array_agg(q.id) into v_full
          from (select l.queue_id, sum(u.count) as added
                  from unnest(p_lane, p_count) u(lane, count)
                  join queen.lanes l on l.num = u.lane
                 group by l.queue_id) n
          join queen.queues q on q.id = n.queue_id
         where q.max_queue_size > 0 and queen.queue_pending(q.id) + n.added > q.max_queue_size;
        if v_full is not null then
            select array_agg(case when l.queue_id = any (v_full) then 4 else 2 end::int2 order by u.seg)
              into v_status
              from unnest(p_lane) with ordinality u(lane, seg)
              join queen.lanes l on l.num = u.lane;
        end if;
    end if;

    return query
    insert into queen.segments (lane, first_seq, created_at, key_min, key_max, count, keys, body)
    select u.lane, coalesce(last.next_seq, 1) + u.before,
           greatest(v_now, last.after) + u.nth * interval '1 microsecond',
           u.key_min, u.key_max, u.count, u.keys, u.body
      from unnest(p_lane, p_last, p_nth, p_before, p_count, p_key_min, p_key_max, p_keys, p_body)
           with ordinality u(lane, last, nth, before, count, key_min, key_max, keys, body, seg)
      -- An emptied lane keeps a marker of count 0 at its last sequence number (queen.sweep). If either of the two probes finds a segment,
      -- it is the last one. The second runs only if the hint is wrong, for example from a server with later commits.
      left join lateral (
          (select s.first_seq + greatest(s.count, 1) as next_seq,
                  s.created_at + interval '1 microsecond' as after
             from queen.segments s
            where s.lane = u.lane and s.first_seq >= u.last
            order by s.first_seq desc limit 1)
            union all
          (select s.first_seq + greatest(s.count, 1), s.created_at + interval '1 microsecond'
             from queen.segments s
            where s.lane = u.lane and u.last > 0
            order by s.first_seq desc limit 1)
            limit 1) last on true
     where v_status is null or v_status[u.seg] = 0
     order by u.seg -- the order of the result; with ordinality it costs no sort
    returning segments.lane, segments.first_seq, segments.created_at,
              null::int, 0::int2, null::int, null::uuid;

    if found then
        if cardinality(p_plain_key) > 0 then
            -- The lane is locked, so its end is what this call stored there: all of its segments, or the first ones.
            insert into queen.message_keys (lane, key, seq)
            select n.lane, k.key, last.next_seq - n.stored + p_before[k.seg] + k.pos
              from (select u.lane, sum(u.count) as stored
                      from unnest(p_lane, p_count) with ordinality u(lane, count, seg)
                     where v_status is null or v_status[u.seg] = 0
                     group by u.lane) n
              cross join lateral (
                   select s.first_seq + s.count as next_seq from queen.segments s
                    where s.lane = n.lane order by s.first_seq desc limit 1) last
              join unnest(p_plain_seg, p_plain_pos, p_plain_key) k(seg, pos, key) on p_lane[k.seg] = n.lane
             where v_status is null or v_status[k.seg] = 0;
        end if;
        if (select active from queen.rotation) = 'a' then
            insert into queen.changes_a (origin, slot, lanes) values (p_origin, 'a', v_here);
        else
            insert into queen.changes_b (origin, slot, lanes) values (p_origin, 'b', v_here);
        end if;
    end if;

    if v_status is not null then
        return query
        select null::bigint, null::bigint, null::timestamptz, u.seg::int, u.status, null::int, null::uuid
          from unnest(v_status) with ordinality u(status, seg)
         where u.status > 1;
        return query
        select null::bigint, null::bigint, null::timestamptz, d.seg, 1::int2, d.pos, d.id
          from unnest(v_dup_seg, v_dup_pos, v_dup_id) d(seg, pos, id)
         where v_status[d.seg] = 1;
    end if;
end
$$;
