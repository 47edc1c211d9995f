-- How many segments a removal took: with that, what vacuum could not free is told from what it has not met yet (queen.rows_stuck).
alter table queen.retention_history add column segments_deleted int not null default 0;
