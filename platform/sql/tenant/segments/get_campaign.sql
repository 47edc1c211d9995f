-- crm.get_campaign(args): a campaign by id or name, or all of them by name.
-- called by: platform/src/platform/campaigns.c
-- in: campaign: id or name; none: all          out: status 200; 404
-- locks: none          raises: nothing
-- needs: campaign_json, find_campaign
create or replace function crm.get_campaign(p_args json) returns table (status int, body text)
language sql stable
set search_path = crm, pg_temp
as $$
    select 200, json_build_object('campaigns', coalesce((
               select json_agg(crm.campaign_json(c) order by c.name) from crm.campaign c), '[]'))::text
    where p_args ->> 'campaign' is null
    union all
    select 200, crm.campaign_json(c)::text from crm.find_campaign(p_args ->> 'campaign') c
    union all
    select 404, '{"error":"there is no such campaign"}'
    where p_args ->> 'campaign' is not null
      and not exists (select from crm.find_campaign(p_args ->> 'campaign'))
$$;
