-- queen.slices_missing: is there a time among these that no slice of queen.scheduled holds?
--
-- called by  queen.schedule_rows, queen.schedule_messages, queen.make_slices
create or replace function queen.slices_missing(p_due timestamptz[])
returns boolean
language plpgsql stable -- not sql: it is called for each retry, and keeps its plan
as $$
begin
    return (
    -- Slices begin and end on full hours.
    select exists (
        select from (select distinct date_trunc('hour', d, 'UTC') from unnest(p_due) d) h(at)
         where not exists (select from queen.scheduled_slices s
                            where s.from_at = (select max(f.from_at) from queen.scheduled_slices f where f.from_at <= h.at)
                              and s.to_at > h.at)));
end
$$;
