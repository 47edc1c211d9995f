-- queen.take_due: remove due messages of lanes from queen.scheduled and return them.
--
-- called by  queen.fire_scheduled, which has locked the lanes
-- in         p_slices: slices to read; p_from; p_at, p_num: up to this message; p_lanes
-- out        the messages, which are deleted
-- locks      the rows, skipping those of others: they are being cancelled, and if that is rolled back they are taken later
create or replace function queen.take_due(
    p_slices int[], p_from timestamptz, p_at timestamptz, p_num bigint, p_lanes bigint[])
returns table (lane bigint, due_at timestamptz, num bigint, id uuid, key uuid, message bytea, kind "char", correlation_id text)
language plpgsql
-- A plan made when a slice was empty must not become a scan of the whole slice.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    -- Values, not parameters of a cached plan, so that only the needed slices are opened and locked.
    return query execute '
        with mine as materialized (
            select s.slice, s.due_at, s.num from queen.scheduled s
             where s.slice = any ($1) and s.due_at >= $2 and s.due_at <= $3 and (s.due_at, s.num) <= ($3, $4)
               and s.lane = any ($5) for update skip locked)
        delete from queen.scheduled s using mine m
         where s.slice = any ($1) and s.slice = m.slice and s.due_at = m.due_at and s.num = m.num
        returning s.lane, s.due_at, s.num, s.id, s.key, s.message, s.kind, s.correlation_id::text'
        using p_slices, p_from, p_at, p_num, p_lanes;
end
$$;
