-- The oldest comings and goings of a segment that the broker has not got.  $1: segment; $2: how many
select o.id, o.customer_uuid::text, o.entered, crm.iso_ms(o.at)
from crm.segment_outbox o where o.segment_id = $1 order by o.id limit $2
