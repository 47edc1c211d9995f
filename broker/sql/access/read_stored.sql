-- queen.read_stored: read the stored bytes of senders, and remove counts of messages that were removed.
--
-- called by  broker/src/broker/stats/stored.c (call "read_stored"); brokers may call it at the same time
-- in         p_after: counts of lanes behind this one are examined, at least p_limit of them if there are so many
-- out        one row per element, in order; next: p_after of the next call
-- locks      the removed rows of queen.stored_bytes; locked ones are left for the next time
--
-- Messages are removed from the front of a lane, so a count goes when the oldest message that is left is younger than its last one.
create or replace function queen.read_stored(p_subjects text[], p_after bigint, p_limit int)
returns table (subject text, bytes bigint, next bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_to bigint;
begin
    select max(s.lane) into v_to
      from (select s.lane from queen.stored_bytes s where s.lane > p_after order by s.lane limit p_limit) s;
    delete from queen.stored_bytes d
     where (d.lane, d.subject, d.span) in (
           select s.lane, s.subject, s.span
             from queen.stored_bytes s
             left join lateral (select g.created_at from queen.segments g
                                 where g.lane = s.lane and g.count > 0 order by g.first_seq limit 1) oldest on true
            where s.lane > p_after and s.lane <= v_to and s.last_at < coalesce(oldest.created_at, clock_timestamp())
            order by s.lane, s.subject, s.span
              for update of s skip locked);
    return query
    select u.subject, coalesce(sum(s.bytes), 0)::bigint, coalesce(v_to, 0)
      from unnest(p_subjects) with ordinality u(subject, nth)
      left join queen.stored_bytes s on s.subject = u.subject
     group by u.subject, u.nth
     order by u.nth;
end
$$;
