-- crm.list_segments(args): the saved segments by name.
-- called by: platform/src/platform/saved.c
-- in: after (a name), limit          out: status 200, {"segments": [...], "next": name or null}
-- locks: none          raises: nothing
-- needs: segment_json
create or replace function crm.list_segments(p_args json) returns table (status int, body text)
language sql stable
set search_path = crm, pg_temp
as $$
    with page as (
        select s, s.name from crm.segment s
        where s.name > coalesce(p_args ->> 'after', '')
        order by s.name limit coalesce((p_args ->> 'limit')::int, 100)
    )
    select 200, json_build_object(
        'segments', coalesce((select json_agg(crm.segment_json(p.s) order by p.name) from page p), '[]'),
        'next', (select max(p.name) from page p having count(*) = coalesce((p_args ->> 'limit')::int, 100)))::text
$$;
