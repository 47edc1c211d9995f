-- queen.count_stored: add to the counts of stored bytes by sender.
--
-- called by  broker/src/broker/stats/stored.c (call "count_stored")
-- in         one element per count; elements of one call have different keys (p_lane, p_subject, p_span)
--            p_last: when the last of these messages was stored, or is due
-- out        the number of counts
-- locks      rows of queen.stored_bytes in the order of their key
create or replace function queen.count_stored(p_lane bigint[], p_subject text[], p_span bigint[], p_last timestamptz[], p_bytes bigint[])
returns bigint
language plpgsql
as $$
declare
    v_n bigint;
begin
    insert into queen.stored_bytes as s (lane, subject, span, last_at, bytes)
    select c.lane, c.subject, c.span, c.last_at, c.bytes
      from unnest(p_lane, p_subject, p_span, p_last, p_bytes) c(lane, subject, span, last_at, bytes)
     order by c.lane, c.subject, c.span
        on conflict (lane, subject, span) do update
       set last_at = greatest(s.last_at, excluded.last_at), bytes = s.bytes + excluded.bytes;
    get diagnostics v_n = row_count;
    return v_n;
end
$$;
