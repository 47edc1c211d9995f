-- queen.rewrite_bloated_table: rewrite a small table when most of it is dead rows that vacuum cannot reclaim.
--
-- called by  queen.stats_chore, hence by one broker at a time; at most one table in a call
-- out        the name of the table; null: none had to be rewritten, or all of them were in use
-- locks      ACCESS EXCLUSIVE on one table, waiting at most 50 ms for it, because other sessions queue behind it; for owners then their
--            lanes against deletion, with the same timeout. The caller holds advisory lock 737010, so only one session does this
--
-- These are the tables whose rows are updated in place, each a few times a minute: statistics, progress of chores, owners of
-- partitions. While another transaction keeps its snapshot every update leaves a dead row, and every reader of the row passes over them.
-- No snapshot prevents TRUNCATE. The table with most dead rows is first, so that each is rewritten in turn.
--
-- Readers lock the table before they take their snapshot (statements of volatile functions do), so they never find it empty. A REPEATABLE
-- READ transaction that began before and has not used the table yet does. For a dump that is a short moment. The missing rows are created
-- again where it is restored (queen.rotate, queen.note_ages, queen.refresh_stats), or claimed again (owners, whose checkpoints fall back
-- to the group's cursor). Tables that cannot be restored in this way, like schedules, are not rewritten.
create or replace function queen.rewrite_bloated_table()
returns text
language plpgsql
as $$
declare
    v_table text;
begin
    for v_table in
        select t.name
          from unnest(array['lane_stats', 'consumer_stats', 'stats', 'stats_history', 'stats_pass', 'lane_due', 'sweeps', 'rotation',
                            'owners', 'consumer_watermarks', 'worker_metrics_summary']) t(name)
          cross join lateral (select ('queen.' || t.name)::regclass as oid) r
          cross join lateral (select pg_stat_get_dead_tuples(r.oid) as dead, pg_stat_get_live_tuples(r.oid) as live) n
         where n.dead >= queen.dead_versions_limit() and n.dead > 3 * n.live
         order by n.dead desc
    loop
        begin
            set local lock_timeout = '50ms';
            execute format('lock table queen.%I in access exclusive mode', v_table);
            execute format('create unlogged table queen.set_aside as table queen.%I', v_table);
            execute format('truncate queen.%I', v_table);
            execute format('insert into queen.%I table queen.set_aside', v_table);
            drop table queen.set_aside;
            return v_table;
        exception when lock_not_available then
            null; -- it is in use: try again next time
        end;
    end loop;
    return null;
end
$$;
