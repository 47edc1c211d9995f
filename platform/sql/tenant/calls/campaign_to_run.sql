-- A campaign, with its segment's filter, and the run of this trigger if it has begun.  $1: campaign; $2: key of the trigger
select c.name, c.queue, c.template::text, coalesce(c.retry_policy::text, ''), s.filter::text, c.kind,
       r.id, coalesce(r.recipients, 0), coalesce(r.sent, 0), r.finished_at is not null
from crm.campaign c
join crm.segment s on s.id = c.segment_id
left join crm.campaign_run r on r.key = $2
where c.id = $1
