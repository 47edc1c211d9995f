-- queen.list_streams: GET /streams/v1/queries.
--
-- needs: param_int, iso_ms, may_see, freshen_stats
-- called by  broker/src/api/messages/streams.c
-- in         p_args: search (part of the name, in any case), limit (100, at most 1000), offset
-- out        {"queries":[...],"total"}: the registered queries by name, each with its queues, the number of keys in its state (counted up to 10,000), and the lag of the
--            consumer group streams.<name>, which the client libraries use; null if that group has received nothing
create or replace function queen.list_streams(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_now    timestamptz := clock_timestamp();
    v_limit  bigint := least(greatest(queen.param_int(p_args, 'limit', 100), 0), 1000);
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_search text := nullif(lower(p_args ->> 'search'), '');
begin
    perform queen.freshen_stats();
    return (
        with all_of_them as (
            select k.* from queen_streams.queries k
             where queen.may_see(p_args, k.source_queue) and (v_search is null or strpos(lower(k.name), v_search) > 0)
        ), page as (
            select * from all_of_them k order by k.name collate "C" limit v_limit offset v_offset
        )
        select json_build_object(
                   'queries', coalesce((
                       select json_agg(json_build_object(
                                  'id', p.id, 'name', p.name, 'sourceQueue', p.source_queue, 'sinkQueue', p.sink_queue, 'configHash', p.config_hash,
                                  'createdAt', queen.iso_ms(p.created_at), 'updatedAt', queen.iso_ms(p.updated_at),
                                  'keys', (select count(*) from (select from queen_streams.state s where s.query_id = p.id limit 10000) c),
                                  'consumerGroup', g.consumer_group, 'lag', g.pending_messages,
                                  'lagSeconds', case when g.consumer_group is not null
                                                     then coalesce(greatest(floor(date_part('epoch', v_now - g.oldest_pending_at)), 0), 0)::bigint end)
                                  order by p.name collate "C")
                         from page p
                         left join queen.queues q on q.name = p.source_queue
                         left join queen.stats g on g.queue_id = q.id and g.stat_type = 'group' and g.consumer_group = 'streams.' || p.name
                                                and g.child_count > 0), '[]'),
                   'total', (select count(*) from all_of_them)));
end
$$;
