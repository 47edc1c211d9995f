-- Plans that were made when there was next to nothing.
--
-- A plan is made once and kept until somebody analyzes a table of it.  One made while PostgreSQL believed that there was a single partition (an ANALYZE
-- of a new installation, or of a restored dump) may look for a row by the wrong index: all cost the same then.

-- The lane behind the group: so a consumer is found at once by either index that has its group.
create index consumers_by_group_lane on queen.consumers (grp, lane);
drop index queen.consumers_by_group;

-- Once a table has some hundred rows, what PostgreSQL believes of it is about half of what there is at least, a minute later.  Analyzed when it has
-- doubled, not at every tenth more (the default): plans are made anew seldom, and for large tables it is less work than it was.
alter table queen.lanes set (autovacuum_analyze_threshold = 250, autovacuum_analyze_scale_factor = 1);
alter table queen.consumers set (autovacuum_analyze_threshold = 250, autovacuum_analyze_scale_factor = 1);
alter table queen.segments set (autovacuum_analyze_threshold = 1000, autovacuum_analyze_scale_factor = 1);
alter table queen.message_keys set (autovacuum_analyze_threshold = 1000, autovacuum_analyze_scale_factor = 1);
