-- queen.rewrite_bloated_table: a table of ours that is mostly dead rows, which something keeps vacuum from freeing, is written anew.
--
-- called by  queen.stats_chore, hence by one broker at a time; at most one table in a call
-- out        which one; null: none had to be, or all that had to were in use
-- locks      ACCESS EXCLUSIVE on one table, waiting 50 ms at most for it: others wait behind; for owners then their lanes against deletion, with
--            the same patience.  The caller holds advisory 737010, so that nobody else is at it
--
-- These are the tables whose rows are updated in place, each a few times a minute: figures, marks of how far chores have come, who owns
-- what.  While a transaction elsewhere keeps its snapshot every update leaves a dead row, and whoever reads the row walks over them.  TRUNCATE is
-- held back by nobody's snapshot.  The one with most dead rows comes first, so that each has its turn.
--
-- Readers lock the table before they take their snapshot (statements of volatile functions do), so none finds it empty.  A REPEATABLE READ
-- transaction that began before and has not used the table yet does.  For a dump that is a moment; what it misses then is made anew where it is
-- restored (queen.rotate, queen.note_ages, queen.refresh_stats), or claimed anew (owners, whose checkpoints fall back to the group's cursor).
-- What cannot be, like schedules, is not written anew.
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
            null; -- somebody uses it: next time
        end;
    end loop;
    return null;
end
$$;
