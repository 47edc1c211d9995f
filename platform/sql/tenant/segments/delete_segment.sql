-- crm.delete_segment(args): deletes a saved segment with its members and history.
-- called by: platform/src/platform/saved.c
-- in:  segment: id or name
-- out: status 200 and {"deleted": id}; 404; 409 while a campaign uses it
-- locks: the segment's row          raises: nothing
-- needs: find_segment
create or replace function crm.delete_segment(p_args json) returns table (status int, body text)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    gone uuid;
begin
    select s.id into gone from crm.find_segment(p_args ->> 'segment') s;
    if gone is null then
        return query select 404, '{"error":"there is no such segment"}';
    elsif exists (select from crm.campaign c where c.segment_id = gone) then
        return query select 409, '{"error":"campaigns are sent to this segment; delete them first"}';
    else
        delete from crm.segment where id = gone;
        return query select 200, json_build_object('deleted', gone)::text;
    end if;
end
$$;
