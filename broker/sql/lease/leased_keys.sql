-- queen.leased_keys: the keys of the messages p_first..p_last of a lane, packed, in order.
--
-- A segment contains at most 256 messages, so the one that contains p_first starts less than 256 before it.
create or replace function queen.leased_keys(p_lane bigint, p_first bigint, p_last bigint)
returns bytea
language plpgsql stable strict
as $$
begin
    return (
        select string_agg(substr(s.keys, 1 + 16 * greatest(p_first - s.first_seq, 0)::int,
                                 16 * (least(p_last, s.first_seq + s.count - 1)
                                       - greatest(p_first, s.first_seq) + 1)::int),
                          ''::bytea order by s.first_seq)
          from queen.segments s
         where s.lane = p_lane and s.first_seq <= p_last
           and s.first_seq >= coalesce((select p.first_seq from queen.segments p
                                         where p.lane = p_lane and p.first_seq <= p_first
                                           and p.first_seq > p_first - 256
                                         order by p.first_seq desc limit 1), p_first));
end
$$;
