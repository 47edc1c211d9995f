-- queen.settle: acknowledge deliveries, as brokers of before error codes and workers asked for it.
--
-- needs: settle_2
-- called by  brokers of an earlier version while a new one is rolled out
-- in, out    as queen.settle_2, without those
create or replace function queen.settle(
    p_origin int, p_lane_id uuid[], p_group text[], p_keys bytea[], p_uniform boolean[], p_lease uuid[],
    p_entry_group int[], p_entry_status int2[], p_entry_lease uuid[], p_entry_error text[],
    p_final boolean)
returns table (grp int, entry int, why int2, released boolean, dead boolean,
               queue_name text, lane_name text, lane bigint, consumer bigint, more boolean)
language sql
as $$
    select s.grp, s.entry, s.why, s.released, s.dead, s.queue_name, s.lane_name, s.lane, s.consumer, s.more
      from queen.settle_2(p_origin, p_lane_id, p_group, p_keys, p_uniform, p_lease, p_entry_group, p_entry_status,
                          p_entry_lease, p_entry_error, null, null, null, p_final) s
$$;
