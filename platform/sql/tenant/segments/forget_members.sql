-- crm.forget_members(segment): deletes the members and unsent events of a segment that is not watched any more. Otherwise
-- they would cause wrong entries and exits when it is watched again.
-- called by: crm.watch_segment, crm.delete_campaign
-- in: a segment's id          out: -          locks: its row, then its members          raises: nothing
create or replace function crm.forget_members(p_segment uuid) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
begin
    update crm.segment s set watched_since = null, evaluated_at = null where s.id = p_segment and s.watch_every_s is null;
    if found then
        delete from crm.segment_member m where m.segment_id = p_segment;
        delete from crm.segment_outbox o where o.segment_id = p_segment;
    end if;
end
$$;
