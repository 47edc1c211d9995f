-- Runs of campaigns on entering that were made by a look and are not announced yet, oldest first.  $1: segment
select r.campaign_id::text, r.key
from crm.campaign c join crm.campaign_run r on r.campaign_id = c.id
where c.segment_id = $1 and c.kind = 'entering' and not r.announced
order by r.created_at, r.key limit 100
