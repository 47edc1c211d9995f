-- A run of a campaign on entering is announced once: its trigger is then with the broker, which retries it.
-- Only a look at a segment makes runs that are not announced yet.
alter table crm.campaign_run add column announced boolean not null default true;
update crm.campaign_run set announced = false where key like 'entering:%' and finished_at is null and sent = 0;
create index campaign_run_unannounced on crm.campaign_run (campaign_id, created_at) where not announced;
