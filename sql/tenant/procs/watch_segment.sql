-- crm.watch_segment(args): subscribes a queue to a segment, or ends that.
-- called by: src/platform/saved.c
-- in:  segment: id or name; queue (null: end it), everySeconds, initial
-- out: status 200 and the segment, or 404
-- locks: the segment's row          raises: nothing
-- needs: segment_json, find_segment
create or replace function crm.watch_segment(p_args json) returns table (status int, body text)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    found_one crm.segment;
begin
    select * into found_one from crm.find_segment(p_args ->> 'segment');
    if found_one.id is null then
        return query select 404, '{"error":"there is no such segment"}';
        return;
    end if;
    update crm.segment s
    set watch_queue = p_args ->> 'queue',
        watch_initial = coalesce((p_args ->> 'initial')::boolean, false),
        watch_every_s = case when p_args ->> 'queue' is not null
                                  or exists (select from crm.campaign c where c.segment_id = s.id and c.kind = 'entering')
                             then coalesce((p_args ->> 'everySeconds')::int, s.watch_every_s, 10) end
    where s.id = found_one.id
    returning * into found_one;
    if found_one.watch_every_s is null then -- nobody is counted any more
        delete from crm.segment_member m where m.segment_id = found_one.id;
        delete from crm.segment_outbox o where o.segment_id = found_one.id;
        update crm.segment s set watched_since = null where s.id = found_one.id returning * into found_one;
    end if;
    return query select 200, crm.segment_json(found_one)::text;
end
$$;
