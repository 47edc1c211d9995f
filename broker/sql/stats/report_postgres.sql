-- queen.report_postgres: GET /api/v1/analytics/postgres-stats.
--
-- needs: iso_ms, round2
-- called by  broker/src/api/monitoring/analytics.c
-- out        PostgreSQL's statistics of the tables of the schema queen, largest (or busiest) first, at most 50 of each;
--            bufferUsage only if the extension pg_buffercache is installed and readable
create or replace function queen.report_postgres(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_usage json := '[]';
    v_cache text;
begin
    select quote_ident(n.nspname) into v_cache from pg_extension e join pg_namespace n on n.oid = e.extnamespace
     where e.extname = 'pg_buffercache';
    if v_cache is not null then
        begin
            execute format(
                'select coalesce(json_agg(json_build_object(''object'', u.relname, ''bufferedSize'', pg_size_pretty(u.bytes),
                                     ''bufferedBytes'', u.bytes, ''percentOfCache'', queen.round2(u.share))), ''[]'')
                   from (select c.relname, count(*) * current_setting(''block_size'')::bigint as bytes,
                                100.0 * count(*) / (select setting::bigint from pg_settings where name = ''shared_buffers'')
                                    as share
                           from %s.pg_buffercache b
                           join pg_class c on b.relfilenode = pg_relation_filenode(c.oid)
                           join pg_namespace n on n.oid = c.relnamespace
                          where n.nspname = ''queen''
                            and b.reldatabase = (select oid from pg_database where datname = current_database())
                          group by 1 order by 2 desc limit 50) u', v_cache) into v_usage;
        exception when insufficient_privilege then
            v_usage := '[]';
        end;
    end if;

    return json_build_object(
        'timestamp', queen.iso_ms(clock_timestamp()),
        'database', current_database(),
        'databaseCache', (
            select json_build_object('database', d.datname, 'diskReads', d.blks_read, 'cacheHits', d.blks_hit,
                       'cacheHitRatio', queen.round2((100.0 * d.blks_hit / nullif(d.blks_hit + d.blks_read, 0))::float8))
              from pg_stat_database d where d.datname = current_database()),
        'tableCache', (
            select coalesce(json_agg(json_build_object('schema', t.schemaname, 'table', t.relname, 'diskReads', t.heap_blks_read,
                       'cacheHits', t.heap_blks_hit, 'cacheHitRatio', queen.round2(
                           (100.0 * t.heap_blks_hit / nullif(t.heap_blks_hit + t.heap_blks_read, 0))::float8))), '[]')
              from (select * from pg_statio_user_tables where schemaname = 'queen'
                     order by heap_blks_hit + heap_blks_read desc, relname limit 50) t),
        'indexCache', (
            select coalesce(json_agg(json_build_object('schema', i.schemaname, 'table', i.relname, 'index', i.indexrelname,
                       'diskReads', i.idx_blks_read, 'cacheHits', i.idx_blks_hit, 'cacheHitRatio', queen.round2(
                           (100.0 * i.idx_blks_hit / nullif(i.idx_blks_hit + i.idx_blks_read, 0))::float8))), '[]')
              from (select * from pg_statio_user_indexes where schemaname = 'queen'
                     order by idx_blks_hit + idx_blks_read desc, indexrelname limit 50) i),
        'cacheSummary', (
            select json_build_object(
                       'tables', json_build_object('diskReads', t.reads, 'cacheHits', t.hits,
                           'hitRatio', queen.round2((100.0 * t.hits / nullif(t.hits + t.reads, 0))::float8)),
                       'indexes', json_build_object('diskReads', i.reads, 'cacheHits', i.hits,
                           'hitRatio', queen.round2((100.0 * i.hits / nullif(i.hits + i.reads, 0))::float8)))
              from (select coalesce(sum(heap_blks_read), 0)::bigint as reads, coalesce(sum(heap_blks_hit), 0)::bigint as hits
                      from pg_statio_user_tables where schemaname = 'queen') t,
                   (select coalesce(sum(idx_blks_read), 0)::bigint as reads, coalesce(sum(idx_blks_hit), 0)::bigint as hits
                      from pg_statio_user_indexes where schemaname = 'queen') i),
        'deadTuples', (
            select coalesce(json_agg(json_build_object('schema', t.schemaname, 'table', t.relname, 'deadTuples', t.n_dead_tup,
                       'liveTuples', t.n_live_tup, 'deadPercentage', queen.round2(
                           (100.0 * t.n_dead_tup / nullif(t.n_dead_tup + t.n_live_tup, 0))::float8),
                       'lastVacuum', queen.iso_ms(t.last_vacuum), 'lastAutovacuum', queen.iso_ms(t.last_autovacuum))), '[]')
              from (select * from pg_stat_user_tables where schemaname = 'queen' and n_dead_tup > 0
                     order by n_dead_tup desc, relname limit 50) t),
        'hotUpdates', (
            select coalesce(json_agg(json_build_object('schema', t.schemaname, 'table', t.relname, 'totalUpdates', t.n_tup_upd,
                       'hotUpdates', t.n_tup_hot_upd, 'hotUpdatePercentage', queen.round2(
                           (100.0 * t.n_tup_hot_upd / nullif(t.n_tup_upd, 0))::float8))), '[]')
              from (select * from pg_stat_user_tables where schemaname = 'queen' and n_tup_upd > 0
                     order by n_tup_upd desc, relname limit 50) t),
        'activeQueries', (
            select coalesce(json_agg(json_build_object('pid', a.pid, 'duration', queen.round2(
                           extract(epoch from clock_timestamp() - a.query_start)::float8) || ' s',
                       'state', a.state, 'query', left(a.query, 500), 'waitEventType', a.wait_event_type,
                       'waitEvent', a.wait_event)), '[]')
              from (select * from pg_stat_activity where datname = current_database() and state <> 'idle'
                       and pid <> pg_backend_pid() and backend_type = 'client backend'
                     order by query_start limit 50) a),
        'oldTransactions', ( -- what keeps vacuum from reclaiming rows, oldest first
            select coalesce(json_agg(json_build_object('kind', x.kind, 'pid', x.pid, 'name', x.name, 'user', x.usr, 'state', x.state,
                       'startedAt', queen.iso_ms(x.started), 'ageSeconds', floor(extract(epoch from clock_timestamp() - x.started))::bigint,
                       'xminAge', x.xmin_age, 'query', left(x.query, 500)) order by x.xmin_age desc nulls last, x.started), '[]')
              from (select 'session' as kind, a.pid, a.application_name as name, a.usename::text as usr, a.state, a.xact_start as started,
                           greatest(age(a.backend_xmin), age(a.backend_xid)) as xmin_age, a.query
                      from pg_stat_activity a
                     where a.pid <> pg_backend_pid() and (a.backend_xmin is not null or a.backend_xid is not null)
                       and a.backend_type = 'client backend' and a.xact_start < clock_timestamp() - interval '10 seconds'
                     union all
                    select 'prepared transaction', null, p.gid, p.owner::text, null, p.prepared, age(p.transaction), null from pg_prepared_xacts p
                     union all
                    select 'replication slot', s.active_pid, s.slot_name::text, null, case when s.active then 'active' else 'inactive' end, null,
                           greatest(age(s.xmin), age(s.catalog_xmin)), null
                      from pg_replication_slots s where s.xmin is not null or s.catalog_xmin is not null
                     order by xmin_age desc nulls last limit 20) x),
        'autovacuumStatus', (
            select coalesce(json_agg(json_build_object('table', t.relname, 'lastAutovacuum', queen.iso_ms(t.last_autovacuum),
                       'deadTuples', t.n_dead_tup, 'autovacuumCount', t.autovacuum_count,
                       'autoanalyzeCount', t.autoanalyze_count)), '[]')
              from (select * from pg_stat_user_tables where schemaname = 'queen'
                     order by n_dead_tup desc, relname limit 50) t),
        'bufferConfig', (
            select json_build_object('sharedBuffers', s.setting, 'sharedBuffersSize',
                                     pg_size_pretty(s.setting::bigint * current_setting('block_size')::bigint))
              from pg_settings s where s.name = 'shared_buffers'),
        'bufferUsage', v_usage,
        'tableSizes', (
            select coalesce(json_agg(json_build_object('table', t.relname, 'totalSize', pg_size_pretty(t.total),
                       'totalSizeBytes', t.total, 'tableSize', pg_size_pretty(t.heap), 'tableSizeBytes', t.heap,
                       'indexSize', pg_size_pretty(t.idx), 'indexSizeBytes', t.idx)), '[]')
              from (select c.relname, pg_total_relation_size(c.oid) as total, pg_table_size(c.oid) as heap,
                           pg_indexes_size(c.oid) as idx
                      from pg_class c join pg_namespace n on n.oid = c.relnamespace
                     where n.nspname = 'queen' and c.relkind = 'r'
                     order by 2 desc, 1 limit 50) t));
end
$$;
