-- The broker has these.  $1: ids of crm.segment_outbox
delete from crm.segment_outbox where id = any ($1)
