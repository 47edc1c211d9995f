-- crm.find_campaign(ref): a campaign by name or id.
-- called by: crm.get_campaign, crm.delete_campaign, crm.campaign_runs
-- in: name or id          out: the row, or nothing          locks: none          raises: nothing
create or replace function crm.find_campaign(p_ref text) returns setof crm.campaign
language sql stable
set search_path = crm, pg_temp
as $$
    select * from crm.campaign c where c.name = p_ref or c.id::text = lower(p_ref)
    -- a name takes precedence over the id of another campaign
    order by c.name = p_ref desc limit 1
$$;
