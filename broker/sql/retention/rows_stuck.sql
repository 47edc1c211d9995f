-- queen.rows_stuck: the number of dead rows of a table that vacuum has found and could not reclaim.
--
-- needs: dead_rows_limit, vacuum_grace, vacuum_comes_at
-- called by  functions that remove rows by age, before they do: queen.sweep, queen.tidy and others
-- out        0 if there are few (queen.dead_rows_limit), or if vacuum does not run
--
-- While another transaction keeps its snapshot, removal frees no space: each row stays in the table and in its indexes as a dead row, and
-- the table would become mostly dead rows. So removal pauses, and continues once vacuum has reclaimed them.
-- (The owner of the snapshot cannot be queried: sessions of other roles are visible to pg_monitor only, and a standby's or a
-- replication slot's snapshot is elsewhere again. The rows that vacuum left are visible to every role.)
--
-- Vacuum may not have seen rows that were removed after it began. Rows that sweeps removed since a minute before it ended are
-- not counted. For tables other than segments the number of removed messages is an upper bound of their rows.
--
-- The report of a vacuum is used for a while (queen.vacuum_grace). After that: autovacuum starts at a share of dead rows, 5 % of segments,
-- and a table that has grown may have too few of them, so that waiting for it would never end. So removal continues until autovacuum
-- must start (queen.vacuum_comes_at, and a quarter more), and then pauses again. It stops waiting after an hour, or if autovacuum is off.
create or replace function queen.rows_stuck(p_table regclass)
returns bigint
language plpgsql
as $$
declare
    v_dead bigint := pg_stat_get_dead_tuples(p_table);
    v_seen timestamptz; -- end of the last vacuum
    v_new  bigint;      -- rows that it may not have seen
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
