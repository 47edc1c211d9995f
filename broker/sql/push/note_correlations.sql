-- queen.note_correlations: messages of a segment just stored are to be found by their correlation ids, where they have some.
--
-- needs: unpack_segment
-- called by  what pushes one request at a time: queen.push_items_now, queen.push_whole
-- in         p_body: of the segment; one without the word in it is not opened
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
