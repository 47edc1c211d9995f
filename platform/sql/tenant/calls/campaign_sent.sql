-- The broker has the recipients of a run up to this number.  $1: run; $2: number.  Returns whether that is all.
update crm.campaign_run
set sent = greatest(sent, $2), finished_at = case when greatest(sent, $2) >= recipients then coalesce(finished_at, now()) end
where id = $1
returning sent >= recipients
