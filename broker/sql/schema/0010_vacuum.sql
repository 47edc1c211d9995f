-- Vacuum follows what dies, not what is added.
--
-- Nothing reads these tables by the visibility map, so a vacuum after inserts buys only early freezing.  By default it
-- comes every 1,000 + 20 % rows: again and again while a table is young, 2 us of CPU per message pushed.  Dead rows
-- (retention, deleted queues) still bring it as before, and anti-wraparound vacuums do not depend on this.
alter table queen.segments set (autovacuum_vacuum_insert_threshold = 2000000,
                                autovacuum_analyze_threshold = 100000);
alter table queen.lanes set (autovacuum_vacuum_insert_threshold = 200000,
                             autovacuum_analyze_threshold = 10000);
alter table queen.message_keys set (autovacuum_vacuum_insert_threshold = 2000000,
                                    autovacuum_analyze_threshold = 100000);
alter table queen.consumers set (autovacuum_vacuum_insert_threshold = 200000,
                                 autovacuum_analyze_threshold = 10000);
