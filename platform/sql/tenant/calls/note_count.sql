-- A count of a saved segment into its history.
insert into crm.segment_history (segment_id, count, path) values ($1, $2, $3)
on conflict do nothing
