-- crm.segment_counts(args): the history of a saved segment's counts, newest first.
-- called by: platform/src/platform/saved.c
-- in: segment: id or name; before (a time), limit          out: status 200, {"counts": [...]}; or 404
-- locks: none          raises: 22007 for an invalid time
-- needs: iso_ms, find_segment
create or replace function crm.segment_counts(p_args json) returns table (status int, body text)
language sql stable
set search_path = crm, pg_temp
as $$
    select 200, json_build_object('segment', s.id, 'counts', coalesce((
               select json_agg(json_build_object('at', crm.iso_ms(h.at), 'count', h.count, 'path', h.path) order by h.at desc)
               from (select * from crm.segment_history h
                     where h.segment_id = s.id and h.at < coalesce((p_args ->> 'before')::timestamptz, 'infinity')
                     order by h.at desc limit coalesce((p_args ->> 'limit')::int, 100)) h), '[]'))::text
    from crm.find_segment(p_args ->> 'segment') s
    union all
    select 404, '{"error":"there is no such segment"}'
    where not exists (select from crm.find_segment(p_args ->> 'segment'))
$$;
