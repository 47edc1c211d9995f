-- The broker has the triggers of these runs.  $1: keys
update crm.campaign_run set announced = true where key = any ($1) and not announced
