-- A message that waited for its time is found by its id too: queen.fire_due notes the id beside the correlation id, so that a message may
-- have two rows.  Ids of other messages tell where they are, and are not noted.
alter table queen.correlations
    drop constraint correlations_pkey,
    add primary key (lane, seq, correlation);
