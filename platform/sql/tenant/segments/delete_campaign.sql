-- crm.delete_campaign(args): deletes a campaign with its runs.  Messages that the broker already has are delivered.
-- called by: platform/src/platform/campaigns.c
-- in: campaign: id or name          out: status 200, {"deleted": id}; 404
-- locks: the segment's row, then the campaign's          raises: nothing
-- needs: find_campaign, forget_members
create or replace function crm.delete_campaign(p_args json) returns table (status int, body text)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    gone crm.campaign;
begin
    select * into gone from crm.find_campaign(p_args ->> 'campaign');
    -- Lock the segment before the campaign: a check locks the segment and adds runs to the campaign.
    perform from crm.segment s where s.id = gone.segment_id for no key update;
    delete from crm.campaign c where c.id = gone.id returning * into gone;
    if gone.id is null then
        return query select 404, '{"error":"there is no such campaign"}';
        return;
    end if;
    -- Stop watching the segment when it has no subscription and no other campaign on entry.
    update crm.segment s set watch_every_s = null
    where s.id = gone.segment_id and s.watch_queue is null
      and not exists (select from crm.campaign c where c.segment_id = s.id and c.kind = 'entering');
    perform crm.forget_members(gone.segment_id);
    return query select 200, json_build_object(
        'deleted', gone.id, 'kind', gone.kind, 'segmentId', gone.segment_id,
        'watched', (select s.watch_every_s is not null from crm.segment s where s.id = gone.segment_id))::text;
end
$$;
