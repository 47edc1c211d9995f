-- crm.changes_under_way(): true if a transaction has called crm.changed() and has not ended.
-- called by: crm.refresh_view
-- in: -          out: boolean          locks: none          raises: nothing
create or replace function crm.changes_under_way() returns boolean
language sql volatile
set search_path = crm, pg_temp
as $$
    select exists (
        select from pg_locks
        where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
          and classid = 7642 and objid = 0 and objsubid = 2 and mode = 'ShareLock' and pid <> pg_backend_pid())
$$;
