-- crm.create_campaign(args): creates a campaign for a saved segment.
-- called by: platform/src/platform/campaigns.c
-- in:  name, segment (id or name), kind, at, cron, timezone, queue, channel, template, retryPolicy (checked by the caller)
-- out: status 201 and the campaign; 404: unknown segment; 409: the name is in use.  If kind is entering, the segment is
--      watched from now on
-- locks: the segment's row          raises: 22007 for an invalid time
-- needs: campaign_json, find_segment
create or replace function crm.create_campaign(p_args json) returns table (status int, body text)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    target crm.segment;
    made crm.campaign;
begin
    select * into target from crm.find_segment(p_args ->> 'segment');
    if target.id is null then
        return query select 404, '{"error":"there is no such segment"}';
        return;
    end if;
    insert into crm.campaign (name, segment_id, kind, at, cron, timezone, queue, channel, template, retry_policy)
    values (p_args ->> 'name', target.id, p_args ->> 'kind', (p_args ->> 'at')::timestamptz, p_args ->> 'cron',
            p_args ->> 'timezone', p_args ->> 'queue', p_args ->> 'channel', p_args -> 'template', p_args -> 'retryPolicy')
    on conflict (name) do nothing
    returning * into made;
    if made.id is null then
        return query select 409, '{"error":"there is a campaign of this name already"}';
        return;
    end if;
    if made.kind = 'entering' then
        update crm.segment s set watch_every_s = coalesce(s.watch_every_s, 10) where s.id = target.id;
    end if;
    return query select 201, crm.campaign_json(made)::text;
end
$$;
