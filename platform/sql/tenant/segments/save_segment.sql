-- crm.save_segment(args): creates a segment, or changes the one of that name.
-- called by: platform/src/platform/saved.c
-- in:  name, filter (checked by the caller)
-- out: status 201 or 200, and the segment
-- locks: the segment's row          raises: nothing
-- needs: segment_json
create or replace function crm.save_segment(p_args json) returns table (status int, body text)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    saved crm.segment;
    is_new boolean;
begin
    insert into crm.segment (name, filter) values (p_args ->> 'name', p_args -> 'filter')
    on conflict (name) do update set filter = excluded.filter, updated_at = now()
    returning * into saved;
    is_new := saved.created_at = saved.updated_at and saved.created_at = now();
    return query select case when is_new then 201 else 200 end, crm.segment_json(saved)::text;
end
$$;
