-- Runs of campaigns on entering that were made with a look and may not have been announced.  $1: segment
select r.campaign_id::text, r.key
from crm.campaign c join crm.campaign_run r on r.campaign_id = c.id
where c.segment_id = $1 and c.kind = 'entering' and r.finished_at is null and r.sent = 0
order by r.created_at limit 100
