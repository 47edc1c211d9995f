-- queen.oldest_kept: messages of a lane before this one were removed, or are too old to be delivered again.
--
-- needs: cursor_at
-- called by  queen.claim_work
-- in         p_cutoff: time before which a message is too old; null: none is
create or replace function queen.oldest_kept(p_lane bigint, p_cutoff timestamptz)
returns bigint
language sql stable
as $$
    select greatest((select s.first_seq from queen.segments s
                      where s.lane = p_lane and s.count > 0 -- not the marker of an empty lane
                      order by s.first_seq limit 1),
                    queen.cursor_at(p_lane, p_cutoff - interval '1 microsecond') + 1)
$$;
