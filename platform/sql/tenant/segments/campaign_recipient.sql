-- crm.campaign_recipient(args): where to find the message of one recipient of a run.
-- called by: platform/src/platform/campaign_runs.c
-- in:  campaign: id or name; run, customer
-- out: status 200, {"queue": ..., "skipped": why it got no message, or null}; 404: unknown campaign, or the run is not one of its
-- locks: none          raises: nothing
-- needs: find_campaign
create or replace function crm.campaign_recipient(p_args json) returns table (status int, body text)
language sql stable
set search_path = crm, pg_temp
as $$
    with run as (
        select c.queue, r.id
        from crm.find_campaign(p_args ->> 'campaign') c join crm.campaign_run r on r.campaign_id = c.id
        where r.id = (p_args ->> 'run')::uuid
    )
    select 200, json_build_object(
               'queue', run.queue,
               'skipped', (select s.skipped from crm.campaign_recipient s
                           where s.run_id = run.id and s.customer_uuid = (p_args ->> 'customer')::uuid and s.skipped is not null limit 1))::text
    from run
    union all
    select 404, '{"error":"the campaign has no such run"}' where not exists (select from run)
$$;
