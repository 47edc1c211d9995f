-- crm.delete_campaign(args): ends a campaign; its runs go with it.  What the broker has already is delivered.
-- called by: src/platform/campaigns.c
-- in: campaign: id or name          out: status 200, {"deleted": id}; 404
-- locks: the campaign's row          raises: nothing
create or replace function crm.delete_campaign(p_args json) returns table (status int, body text)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    gone crm.campaign;
begin
    delete from crm.campaign c where c.name = p_args ->> 'campaign' or c.id::text = lower(p_args ->> 'campaign')
    returning * into gone;
    if gone.id is null then
        return query select 404, '{"error":"there is no such campaign"}';
        return;
    end if;
    -- Nobody else looks at the segment.
    update crm.segment s set watch_every_s = null, watched_since = null
    where s.id = gone.segment_id and s.watch_queue is null
      and not exists (select from crm.campaign c where c.segment_id = s.id and c.kind = 'entering');
    return query select 200, json_build_object(
        'deleted', gone.id, 'kind', gone.kind, 'segmentId', gone.segment_id,
        'watched', (select s.watch_every_s is not null from crm.segment s where s.id = gone.segment_id))::text;
end
$$;
