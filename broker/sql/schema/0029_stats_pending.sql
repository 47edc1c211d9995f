-- Lanes that a statistics pass has left to the next one, because it counts a bounded number (queen.refresh_stats).
create table queen.stats_pending (
    lane bigint primary key,
    old  boolean not null  -- found while everything was counted anew: its messages did not come just now
) with (autovacuum_vacuum_scale_factor = 0.1, vacuum_truncate = off);
