-- crm.get_segment(args): a saved segment.
-- called by: platform/src/platform/saved.c
-- in: segment: id or name          out: status 200 and the segment, or 404
-- locks: none          raises: nothing
-- needs: segment_json, find_segment
create or replace function crm.get_segment(p_args json) returns table (status int, body text)
language sql stable
set search_path = crm, pg_temp
as $$
    select 200, crm.segment_json(s)::text from crm.find_segment(p_args ->> 'segment') s
    union all
    select 404, '{"error":"there is no such segment"}'
    where not exists (select from crm.find_segment(p_args ->> 'segment'))
$$;
