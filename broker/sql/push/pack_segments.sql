-- queen.pack_segments: pack messages into segments, as arguments for queen.push_segments.
--
-- needs: key_time
-- called by  queen.push_items_now; queen.execute_transaction_v2
-- in         one element per message, in order: lane, key, packed message
-- out        one row: the arguments, and per message its segment (1-based) and position
--
-- A segment contains at most 256 messages and 64 KB (or one longer message), and its UUIDv7 keys span at most one
-- second: see queen.segments.
create or replace function queen.pack_segments(p_message_lane bigint[], p_message_key uuid[], p_message bytea[])
returns table (lanes int, lane bigint[], nth int[], before bigint[], count int[],
               key_min bigint[], key_max bigint[], keys bytea[], body bytea[],
               plain_seg int[], plain_pos int[], plain_key uuid[], item_seg int[], item_pos int[])
language plpgsql
as $$
declare
    m      record;
    n      int := 0;  -- the current segment
    v_keys bytea[];   -- its keys; joined when it is complete
    v_body bytea[];
    v_size int;
    v_seen bigint;    -- messages of the lane before it
    v_nth  int;
    v_min  bigint;
    v_max  bigint;
begin
    lanes := 0;
    lane := '{}'; nth := '{}'; before := '{}'; count := '{}'; key_min := '{}'; key_max := '{}';
    keys := '{}'; body := '{}'; plain_seg := '{}'; plain_pos := '{}'; plain_key := '{}';
    item_seg := array_fill(null::int, array[cardinality(p_message)]); item_pos := item_seg;
    for m in
        select u.ord::int as ord, u.lane, u.key, u.message, queen.key_time(u.key) as at,
               length(u.message) as size
          from unnest(p_message_lane, p_message_key, p_message) with ordinality u(lane, key, message, ord)
         order by u.lane, u.ord
    loop
        if n = 0 or m.lane <> lane[n] or count[n] >= 256 or v_size + m.size > 65536
           or greatest(v_max, m.at) - least(v_min, m.at) > 1000 then
            if n > 0 then
                keys[n] := (select string_agg(k, '') from unnest(v_keys) k);
                body[n] := '\x01' || (select string_agg(b, '') from unnest(v_body) b);
                key_min[n] := v_min;
                key_max[n] := v_max;
            end if;
            if n = 0 or m.lane <> lane[n] then
                lanes := lanes + 1;
                v_seen := 0;
                v_nth := 0;
            else
                v_seen := v_seen + count[n];
                v_nth := v_nth + 1;
            end if;
            n := n + 1;
            lane[n] := m.lane; nth[n] := v_nth; before[n] := v_seen; count[n] := 0;
            v_keys := '{}'; v_body := '{}'; v_size := 0; v_min := null; v_max := null;
        end if;
        if m.at is null then
            plain_seg := plain_seg || n; plain_pos := plain_pos || count[n]; plain_key := plain_key || m.key;
        end if;
        item_seg[m.ord] := n;
        item_pos[m.ord] := count[n];
        count[n] := count[n] + 1;
        v_keys := v_keys || uuid_send(m.key);
        v_body := v_body || m.message;
        v_size := v_size + m.size;
        v_min := least(v_min, m.at);
        v_max := greatest(v_max, m.at);
    end loop;
    if n > 0 then
        keys[n] := (select string_agg(k, '') from unnest(v_keys) k);
        body[n] := '\x01' || (select string_agg(b, '') from unnest(v_body) b);
        key_min[n] := v_min;
        key_max[n] := v_max;
    end if;
    return next;
end
$$;
