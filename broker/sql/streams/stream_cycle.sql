-- queen.stream_cycle: apply state changes, sink pushes and the source acknowledgement of a stream together or not at all.
--
-- numbers:   kind cycle_kind, why ack_why, status seg_status
-- needs: stream_lock, last_receipt, push_whole, advance
-- called by  broker/src/broker/settle/cycle.c (call "stream_cycle"), one call per cycle
-- in         p_query, p_partition (of the source), p_group
--            p_hash      of the request, if no lease prevents it from being applied twice; else null
--            p_items     returned to the caller if the same request is repeated
--            p_key, p_value   state operations in order; value null: delete
--            p_lanes ..  segments of the sink, as for queen.push_segments with p_whole
--            p_ack_key   null: no acknowledgement; the rest as for queen.advance
-- out        kind 0  a stored segment, in the order of p_lane: created_at
--            kind 1  the acknowledgement: released, queue_name, consumer, more
--            kind 2  a failure, with its text in error; of a push also seg (1-based) and status as in
--                    queen.push_segments: 3 (the lane is gone): resolve its name again and retry once
--            kind 3  a duplicate: seg, pos, and dup_id of the stored message. Everything was rolled back: send again without it
--            kind 4  the same request was committed within the last minute; nothing was done. items is its
--                    p_items; rows of kinds 0 and 1 repeat the answer
--            kind 5  always, first: queue_name of the source, or null
--            One row of kind 2 means that everything was rolled back. The other rows then show what would have happened.
-- locks      queen.stream_lock; then as queen.push_segments (queues, lanes), then the consumer
-- raises     nothing for a business failure
create or replace function queen.stream_cycle(
    p_origin int, p_query uuid, p_partition uuid, p_group text, p_hash bytea, p_items bytea,
    p_key text[], p_value text[],
    p_lanes int, p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[],
    p_ack_key uuid, p_ack_lease uuid, p_ack_count int, p_ack_dead boolean, p_ack_error text, p_release boolean)
returns table (kind int2, error text, created_at timestamptz, seg int, status int2, pos int, dup_id uuid,
               released boolean, queue_name text, consumer bigint, more boolean, items bytea)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_now     timestamptz;
    v_slot    int2;
    v_since   timestamptz;  -- when the query was registered or last changed
    v_source  record;
    v_last    queen_streams.receipts%rowtype;
    v_created timestamptz[];
    v_failed  boolean := false;
    v_timeout text := current_setting('lock_timeout');
    r         record;
begin
    perform queen.stream_lock(p_query, p_partition);
    v_now := clock_timestamp();
    v_slot := floor(extract(epoch from v_now) / 60)::bigint % 3;
    select l.num, q.name into v_source
      from queen.lanes l join queen.queues q on q.id = coalesce(l.origin_queue, l.queue_id)
     where l.id = p_partition;
    kind := 5; queue_name := v_source.name;
    return next;

    select q.updated_at into v_since from queen_streams.queries q where q.id = p_query;
    if v_since is null then
        kind := 2; error := format('query %s is not registered', p_query);
        return next;
        return;
    end if;

    select * into v_last
      from queen.last_receipt(v_slot, p_query, p_partition, greatest(v_since, v_now - interval '1 minute'));
    if v_last.hash = p_hash then
        kind := 4; items := v_last.items;
        return next;
        items := null;
        kind := 0;
        foreach created_at in array v_last.created loop
            return next;
        end loop;
        if v_last.acked then
            kind := 1; created_at := null; released := v_last.released;
            return next;
        end if;
        return;
    end if;

    -- Rows returned inside the block stay returned when the block is rolled back.
    begin
        if cardinality(p_key) > 0 then
            with last as materialized (
                select distinct on (u.key collate "C") u.key, u.value
                  from unnest(p_key, p_value) with ordinality u(key, value, ord)
                 order by u.key collate "C", u.ord desc
            ), gone as (
                delete from queen_streams.state s
                 where s.query_id = p_query and s.partition_id = p_partition
                   and s.key = any (array(select l.key from last l where l.value is null))
            )
            insert into queen_streams.state as s (query_id, partition_id, key, value, updated_at)
            select p_query, p_partition, l.key, l.value::jsonb, v_now from last l where l.value is not null
                on conflict (query_id, partition_id, key)
                   do update set value = excluded.value, updated_at = excluded.updated_at;
        end if;

        if p_ack_key is not null and v_source.num is not null
           and (select c.num from queen.consumers c where c.lane = v_source.num and c.grp = p_group) is null then
            perform set_config('lock_timeout', '100ms', true); -- as queen.push_segments
            perform queen.lock_for_transaction(p_lane, '{}', array[p_partition], array[p_group]); -- queen.advance creates a consumer
            perform set_config('lock_timeout', v_timeout, true);
        end if;
        if cardinality(p_lane) > 0 then
            for r in
                select * from queen.push_whole(p_origin, p_lanes, p_lane, p_last, p_nth, p_before, p_count, p_key_min, p_key_max,
                                               p_keys, p_body, p_plain_seg, p_plain_pos, p_plain_key)
            loop
                v_failed := v_failed or r.status > 0;
                kind := case r.status when 0 then 0 when 1 then 3 else 2 end;
                error := case when kind = 2 then r.error end;
                created_at := r.created_at; seg := r.seg; status := r.status; pos := r.pos; dup_id := r.dup_id;
                v_created := v_created || r.created_at;
                return next;
            end loop;
            created_at := null; seg := null; status := null; pos := null; dup_id := null;
        end if;

        if p_ack_key is not null and not v_failed then
            if v_source.num is null then
                v_failed := true;
                kind := 2; error := 'Message not found';
                return next;
            else
                select * into r from queen.advance(p_origin, v_source.num, p_group, p_ack_key, p_ack_lease, p_ack_count,
                                                   p_ack_dead, p_ack_error, p_release);
                v_failed := r.why > 0;
                kind := case r.why when 0 then 1 else 2 end;
                error := case r.why when 1 then 'Message not found' when 2 then 'Invalid or expired lease'
                                    when 4 then 'Message is waiting for its retry' when 5 then 'Message is not delivered'
                                    when 6 then 'Message is settled already' end;
                released := r.released; consumer := r.consumer; more := r.more;
                return next;
            end if;
        end if;

        if v_failed then
            raise exception 'rolled back' using errcode = 'QN010';
        end if;

        if p_hash is not null then
            insert into queen_streams.receipts
                   (slot, query_id, partition_id, at, hash, created, acked, released, items)
            values (v_slot, p_query, p_partition, v_now, p_hash, coalesce(v_created, '{}'), p_ack_key is not null,
                    released, p_items);
        elsif v_last.hash is not null then
            insert into queen_streams.receipts (slot, query_id, partition_id, at)
            values (v_slot, p_query, p_partition, v_now);
        end if;
    exception
        when sqlstate 'QN010' then
            null; -- the returned rows contain the reason
        when foreign_key_violation then
            kind := 2; error := format('query %s is not registered', p_query);
            return next;
    end;
end
$$;
