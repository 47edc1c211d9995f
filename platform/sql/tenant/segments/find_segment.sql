-- crm.find_segment(ref): a saved segment by name or id.
-- called by: the functions for saved segments and campaigns
-- in: id or name          out: the row, or nothing          locks: none          raises: nothing
create or replace function crm.find_segment(p_ref text) returns setof crm.segment
language sql stable
set search_path = crm, pg_temp
as $$
    select * from crm.segment s where s.name = p_ref or s.id::text = lower(p_ref)
    -- a name takes precedence over the id of another segment
    order by s.name = p_ref desc limit 1
$$;
