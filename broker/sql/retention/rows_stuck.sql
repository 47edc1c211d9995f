-- queen.rows_stuck: how many removed rows of a table vacuum has met and could not free.
--
-- needs: dead_rows_limit, vacuum_grace, vacuum_comes_at
-- called by  whoever removes rows because of their age, before it does: queen.sweep, queen.tidy and the like
-- out        0 while they are few (queen.dead_rows_limit), or vacuum does not come
--
-- While a transaction elsewhere keeps its snapshot, removing frees nothing: each row stays in the table and in its indexes, dead, and a table
-- that is swept for as long as that lasts would be dead rows for the most part.  So removal waits, and goes on once vacuum has been able
-- to free what lies there.  (Who holds the snapshot cannot be asked: another role's sessions show it to pg_monitor only, and a
-- standby's or a replication slot's are elsewhere again.  What vacuum left behind everybody can see.)
--
-- Rows removed since vacuum came, or while it was there, it may not have met: those that sweeps removed since a minute before it ended are
-- not counted.  For other tables than segments the messages removed stand for their rows, which are not more.
--
-- What vacuum has reported is believed for a while (queen.vacuum_grace).  Afterwards: autovacuum comes by the share of dead rows, 5 % of segments, and in
-- a table that has grown there may be too few of them.  To wait for it then would be to wait for ever; so more is removed, until it
-- must come (queen.vacuum_comes_at, and a quarter more), and then it is waited for.  An hour later, or if there is none, it is not.
create or replace function queen.rows_stuck(p_table regclass)
returns bigint
language plpgsql
as $$
declare
    v_dead bigint := pg_stat_get_dead_tuples(p_table);
    v_seen timestamptz; -- when vacuum was last done
    v_new  bigint;      -- rows that it may not have met
begin
    if v_dead < queen.dead_rows_limit() then
        return 0;
    end if;
    v_seen := greatest(pg_stat_get_last_vacuum_time(p_table), pg_stat_get_last_autovacuum_time(p_table));
    if v_seen is null or v_seen < clock_timestamp() - interval '1 hour' then
        return 0;
    elsif v_seen < clock_timestamp() - queen.vacuum_grace() then
        return case when v_dead < 1.25 * queen.vacuum_comes_at(p_table) or current_setting('autovacuum') = 'off' then 0 else v_dead end;
    end if;
    select coalesce(sum(case when p_table = 'queen.segments'::regclass then h.segments_deleted else h.messages_deleted end), 0)
      into v_new
      from queen.retention_history h
     where h.executed_at > v_seen - interval '1 minute';
    return case when v_dead - v_new >= queen.dead_rows_limit() then v_dead - v_new else 0 end;
end
$$;
