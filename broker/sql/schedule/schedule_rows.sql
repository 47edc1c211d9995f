-- queen.schedule_rows: insert messages into queen.scheduled.
--
-- needs: slice_at
-- called by  queen.schedule_messages (kind 'p'); queen.schedule_retry (kind 'r'), in the transaction that settles the failure
-- in         one element per message, in the order of arrival: p_lane, where it is appended when due; p_key, queen.transaction_key;
--            p_due_at; p_group, p_attempt of a retry; p_message, packed as in a segment's body. p_id_at: the offset in p_message (1-based)
--            at which to write the 16 bytes of its id; null: it has its own id or none. Whole arrays may be null
-- out        one row per element, in order
-- locks      none: a message without a slice goes to queen.scheduled_far (queen.maintain_slices creates slices in advance)
--
-- Checks nothing: the caller has checked for duplicates and for the lane.
create or replace function queen.schedule_rows(
    p_kind "char", p_lane bigint[], p_key uuid[], p_due_at timestamptz[], p_group text[], p_attempt int[],
    p_correlation_id text[], p_transaction_id text[], p_id_at int[], p_message bytea[])
returns table (idx int, num bigint, id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_now    timestamptz := clock_timestamp();
    v_us     bigint := (extract(epoch from v_now) * 1000000)::bigint;
    v_slice  int := queen.slice_at(v_now);
    v_prefix text := lpad(to_hex(v_us / 1000), 12, '0') || '7' || lpad(to_hex(v_us % 1000 * 4), 3, '0'); -- see queen.schedule_num
begin
    return query
    with written as (
        insert into queen.scheduled (slice, num, due_at, created_at, lane, id, key, attempt, kind, grp, correlation_id,
                                     transaction_id, message)
        select coalesce(k.slice, 0), n.num, n.due_at, v_now, n.lane, n.id, n.key, n.attempt, p_kind, n.grp, n.correlation_id, n.transaction_id,
               case when n.id_at is null then n.message
                    else overlay(n.message placing uuid_send(n.id) from n.id_at) end
          from (select o.*, (v_prefix || to_hex((1::bigint << 63) | o.num))::uuid as id
                  from (select u.*, nextval('queen.scheduled_nums') as num
                          from unnest(p_lane, p_key, p_due_at, p_group, p_attempt, p_correlation_id, p_transaction_id, p_id_at, p_message)
                               u(lane, key, due_at, grp, attempt, correlation_id, transaction_id, id_at, message)
                        offset 0) o offset 0) n
          -- Not a slice of a past hour: it may be dropped at any moment.
          left join queen.scheduled_slices k on k.slice = queen.slice_at(n.due_at) and k.slice >= v_slice
         order by n.num
        returning scheduled.num, scheduled.id)
    select (row_number() over ())::int - 1, w.num, w.id from written w; -- in the order in which they were written
end
$$;
