-- crm.mv_refresh_status: the freshness of each materialized view, and the process that refreshes it now. is_refreshing is
-- not a flag that a crash could leave behind: it shows whether the model's lock is held, and the lock is released with its
-- connection.
-- needs: model_changed_at, model_lock, model_mark, read_model_version
create or replace view crm.mv_refresh_status as
select r.model || '_mv' as mv_name,
       r.refreshed_at as last_refresh_at,
       crm.model_changed_at(r.model) as last_data_change_at,
       l.pid is not null as is_refreshing,
       -- null if the refresher is another user whose activity is not visible to this one
       case when s.application_name like 'refresh by %' then substr(s.application_name, 12) end as refreshing_by,
       s.xact_start as refreshing_since,
       l.pid as refreshing_pid,
       r.refresh_ms as duration_ms,
       r.refresh_rows as rows,
       r.view_version as definition_version,
       r.view_version is distinct from crm.read_model_version(r.model) as needs_build,
       m.mark > r.view_mark or r.view_version is null as is_stale,
       case when r.view_version is not null then
           case when m.mark > r.view_mark then greatest(0, extract(epoch from clock_timestamp() - r.view_as_of)) else 0 end
       end::float8 as stale_seconds,
       r.view_as_of as data_as_of,
       r.refreshes, r.failures, r.last_error, r.last_error_at
from crm.read_model r
cross join lateral (select crm.model_mark(r.model) as mark) m
left join pg_locks l
       on l.locktype = 'advisory' and l.classid = 7642 and l.objsubid = 2 and l.granted and l.mode = 'ExclusiveLock'
      and l.objid = crm.model_lock(r.model)
      and l.database = (select oid from pg_database where datname = current_database())
-- Read after the locks: a session sets its application_name before it takes the lock.  (0: no session; null would be all.)
left join lateral pg_stat_get_activity(coalesce(l.pid, 0)) s on true;
