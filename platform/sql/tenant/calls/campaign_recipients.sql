-- The next recipients of a run, with what templates may say of them.  $1: run; $2: behind this number; $3: how many
select r.n, r.customer_uuid::text, c.first_name, c.last_name, c.email, c.phone, c.language, c.city, c.country
from crm.campaign_recipient r left join crm.customer c on c.customer_uuid = r.customer_uuid
where r.run_id = $1 and r.n > $2 order by r.n limit $3
