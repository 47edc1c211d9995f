-- queen.expire: remove messages that have become too old.
--
-- called by  src/broker/chores.c (call "expire"); several at once do no harm, only less work each
-- in         p_limit: how many segments one run removes at most
-- out        per queue that lost some: how many messages
-- locks      lanes in num order, skipping those a push is at: they have their turn at the next run
--
-- Whole segments go, always from the front of the lane, so that the rest stays gapless:  by ttl all that are older; by
-- maxWaitTimeSeconds all that are older, unless every known group has consumed them.  (Where some group has
-- not, older ones that all have consumed go along: what is behind them would otherwise leave a hole.)
-- A lane that becomes empty keeps a marker, a segment of count 0 at the last sequence, so that
-- numbering never starts over below a cursor.
create or replace function queen.expire(p_limit int)
returns table (queue_name text, expired bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_now     timestamptz := clock_timestamp();
    v_left    int := p_limit;
    v_lanes   bigint[];
    v_names   text[] := '{}';
    v_counts  bigint[] := '{}';
    l         record;  -- a lane with something too old at its front
    s         record;  -- a segment of it
    v_slowest bigint;  -- what every group of the lane has consumed
    v_last    record;  -- the last segment to go
    v_by_ttl  record;
    v_count   bigint;
begin
    -- Oldest first: the limit must not let any lane starve.
    select array_agg(c.num) into v_lanes
      from (select l.num
              from queen.queues q
              join queen.lanes l on l.queue_id = q.id
              join lateral (select f.created_at from queen.segments f
                             where f.lane = l.num and f.count > 0 order by f.first_seq limit 1) f
                on f.created_at < v_now - least(case when q.ttl_acts then q.ttl end,
                                                nullif(q.max_wait_time_seconds, 0)) * interval '1 second'
             where q.ttl_acts or q.max_wait_time_seconds > 0
             order by f.created_at limit p_limit) c;

    for l in
        select l.num, q.name,
               case when q.ttl_acts then v_now - q.ttl * interval '1 second' end as ttl,
               v_now - nullif(q.max_wait_time_seconds, 0) * interval '1 second' as wait
          from queen.lanes l join queen.queues q on q.id = l.queue_id
         where l.num = any (v_lanes)
         order by l.num for no key update of l skip locked
    loop
        exit when v_left <= 0;
        v_last := null;
        v_by_ttl := null;
        v_count := 0;
        for s in
            select g.first_seq, g.count, g.created_at from queen.segments g
             where g.lane = l.num order by g.first_seq limit v_left
        loop
            exit when (s.created_at < l.ttl) is not true and (s.created_at < l.wait) is not true;
            v_last := s;
            if s.created_at < l.ttl then
                v_by_ttl := s;
            end if;
        end loop;
        continue when v_last is null;
        if v_by_ttl is distinct from v_last then
            select min(st.cursor_seq) into v_slowest
              from queen.consumers c
              join lateral (
                   select * from (
                       (select * from queen.consumer_states_a a where a.consumer = c.num order by ver desc limit 1)
                       union all
                       (select * from queen.consumer_states_b b where b.consumer = c.num order by ver desc limit 1)
                   ) slots order by ver desc limit 1) st on true
             where c.lane = l.num;
            if v_slowest >= v_last.first_seq + v_last.count - 1 then
                v_last := v_by_ttl;
                continue when v_last is null;
            end if;
        end if;

        delete from queen.message_keys k
         using queen.segments g, generate_series(0, g.count - 1) i
         where g.lane = l.num and g.first_seq <= v_last.first_seq
           and get_byte(g.keys, i * 16 + 6) >> 4 <> 7
           and k.lane = l.num and k.key = encode(substr(g.keys, i * 16 + 1, 16), 'hex')::uuid
           and k.seq = g.first_seq + i;
        delete from queen.dead_letter_queue d
         where d.lane = l.num and d.seq < v_last.first_seq + v_last.count;
        with gone as (
            delete from queen.segments g where g.lane = l.num and g.first_seq <= v_last.first_seq
            returning g.count)
        select sum(g.count), v_left - count(*) into v_count, v_left from gone g;
        if not exists (select from queen.segments g where g.lane = l.num) then
            insert into queen.segments (lane, first_seq, created_at, count, keys, body)
            values (l.num, v_last.first_seq + greatest(v_last.count, 1) - 1, v_last.created_at, 0, '', '\x01');
        end if;
        v_names := v_names || l.name::text;
        v_counts := v_counts || v_count;
    end loop;

    return query
    select u.name, sum(u.count)::bigint from unnest(v_names, v_counts) u(name, count)
     group by u.name having sum(u.count) > 0 order by u.name;
end
$$;
