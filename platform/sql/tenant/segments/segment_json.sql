-- crm.segment_json(segment): a saved segment as the HTTP interface shows it.
-- called by: crm.save_segment, crm.get_segment, crm.list_segments
-- in: a row of crm.segment          out: JSON          locks: none          raises: nothing
-- needs: iso_ms
create or replace function crm.segment_json(p_segment crm.segment) returns json
language sql stable
set search_path = crm, pg_temp
as $$
    select json_build_object(
        'id', p_segment.id, 'name', p_segment.name, 'filter', p_segment.filter,
        'createdAt', crm.iso_ms(p_segment.created_at), 'updatedAt', crm.iso_ms(p_segment.updated_at),
        'watched', p_segment.watch_every_s is not null,
        'subscription', case when p_segment.watch_queue is not null then json_build_object(
            'queue', p_segment.watch_queue, 'everySeconds', p_segment.watch_every_s, 'initial', p_segment.watch_initial,
            'since', crm.iso_ms(p_segment.watched_since), 'lastLookAt', crm.iso_ms(p_segment.evaluated_at)) end,
        'lastCount', (select json_build_object('count', h.count, 'at', crm.iso_ms(h.at), 'path', h.path)
                      from crm.segment_history h where h.segment_id = p_segment.id order by h.at desc limit 1))
$$;
