-- crm.campaign_runs(args): the triggers of a campaign, newest first: those that started a run, and the scheduled one of a
-- campaign that runs once.
-- called by: platform/src/platform/campaign_runs.c
-- in:  campaign: id or name; tenant: its name; limit
-- out: no row: unknown campaign.  Otherwise a row of nulls, then one per trigger: its key, and the run as JSON without its
--      last brace
-- locks: none          raises: nothing
-- needs: iso_ms, find_campaign
create or replace function crm.campaign_runs(p_args json) returns table (key text, body text)
language sql stable
set search_path = crm, pg_temp
as $$
    with campaign as (
        select c.* from crm.find_campaign(p_args ->> 'campaign') c
    )
    select null, null from campaign
    union all
    (select r.key, rtrim(json_build_object(
                'run', r.id, 'trigger', r.key, 'path', r.path, 'recipients', r.recipients,
                'sent', r.sent - r.blocked - r.no_consent - r.no_address - r.deleted,
                'skipped', json_build_object('blocked', r.blocked, 'noConsent', r.no_consent, 'noAddress', r.no_address, 'deleted', r.deleted),
                'createdAt', crm.iso_ms(r.created_at), 'finishedAt', crm.iso_ms(r.finished_at))::text, '}')
     from campaign c join crm.campaign_run r on r.campaign_id = c.id
     order by r.created_at desc limit coalesce((p_args ->> 'limit')::int, 20))
    union all
    select k.key, rtrim(json_build_object('run', null, 'trigger', k.key, 'path', null, 'recipients', 0, 'sent', 0,
                                          'skipped', json_build_object('blocked', 0, 'noConsent', 0, 'noAddress', 0, 'deleted', 0),
                                          'createdAt', crm.iso_ms(c.created_at), 'finishedAt', null)::text, '}')
    from campaign c, lateral (select format('campaign:%s:%s:once', p_args ->> 'tenant', c.id) as key) k
    where c.kind in ('now', 'at') and not exists (select from crm.campaign_run r where r.campaign_id = c.id)
$$;
