-- crm.campaign_json(campaign): a campaign as the HTTP interface shows it.
-- called by: the functions for campaigns
-- in: a row of crm.campaign          out: JSON          locks: none          raises: nothing
-- needs: iso_ms
create or replace function crm.campaign_json(p_campaign crm.campaign) returns json
language sql stable
set search_path = crm, pg_temp
as $$
    select json_build_object(
        'id', p_campaign.id, 'name', p_campaign.name,
        'segment', (select s.name from crm.segment s where s.id = p_campaign.segment_id), 'segmentId', p_campaign.segment_id,
        'when', json_build_object('kind', p_campaign.kind, 'at', crm.iso_ms(p_campaign.at), 'cron', p_campaign.cron,
                                  'timezone', p_campaign.timezone),
        'queue', p_campaign.queue, 'channel', p_campaign.channel, 'template', p_campaign.template, 'retryPolicy', p_campaign.retry_policy,
        'everySeconds', case when p_campaign.kind = 'entering' then
            (select s.watch_every_s from crm.segment s where s.id = p_campaign.segment_id) end,
        'createdAt', crm.iso_ms(p_campaign.created_at),
        'runs', (select count(*) from crm.campaign_run r where r.campaign_id = p_campaign.id))
$$;
