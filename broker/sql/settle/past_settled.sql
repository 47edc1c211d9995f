-- queen.past_settled: move a cursor past messages that were settled one by one.
--
-- called by  procedures that move a cursor: queen.settle, queen.claim_careful, queen.set_aside, queen.advance
-- in         p_cursor: the last message of an unbroken row of settled ones; p_settled: column "settled" of queen.consumer_states
-- out        cursor_seq: the last message before the first one that is not settled; settled: what is left behind it, or null
create or replace function queen.past_settled(p_cursor bigint, p_settled int8multirange)
returns table (cursor_seq bigint, settled int8multirange)
language sql immutable
as $$
    select n.cursor_seq, nullif(p_settled - int8multirange(int8range(null, n.cursor_seq, '[]')), '{}')
      from (select coalesce((select max(upper(r)) - 1 from unnest(p_settled) r where r @> p_cursor + 1 or r @> p_cursor), p_cursor)) c(at)
      cross join lateral (select greatest(c.at, p_cursor)) n(cursor_seq)
$$;
