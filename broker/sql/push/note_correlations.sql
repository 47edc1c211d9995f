-- queen.note_correlations: index the messages of a stored segment by their correlation ids, if they have any.
--
-- needs: unpack_segment
-- called by  functions that push one request at a time: queen.push_items_now, queen.push_whole
-- in         p_body: of the segment; it is not unpacked unless it contains the word "correlationId"
create or replace function queen.note_correlations(p_lane bigint, p_first_seq bigint, p_count int, p_keys bytea, p_body bytea)
returns void
language plpgsql
as $$
begin
    if position('"correlationId"'::bytea in p_body) > 0 then
        insert into queen.correlations (correlation, lane, seq)
        select queen.transaction_key(c.id), p_lane, p_first_seq + u.pos
          from queen.unpack_segment(p_lane, now(), p_count, p_keys, p_body) u
          cross join lateral (select u.meta::jsonb ->> 'correlationId') c(id)
         where c.id is not null;
    end if;
end
$$;
