-- crm.find_segment(ref): a saved segment by id or by name.
-- called by: the functions about saved segments and campaigns
-- in: id or name          out: the row, or nothing          locks: none          raises: nothing
create or replace function crm.find_segment(p_ref text) returns setof crm.segment
language sql stable
set search_path = crm, pg_temp
as $$
    select * from crm.segment s where s.name = p_ref or s.id::text = lower(p_ref)
    -- a name that looks like an id belongs to its owner
    order by s.name = p_ref desc limit 1
$$;
