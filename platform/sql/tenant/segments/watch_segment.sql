-- crm.watch_segment(args): subscribes a queue to a segment, or ends the subscription.
-- called by: platform/src/platform/saved.c
-- in:  segment: id or name; queue (null: end it), everySeconds, initial
-- out: status 200 and the segment, or 404
-- locks: the segment's row, which a check of the segment also locks          raises: nothing
-- needs: segment_json, find_segment, forget_members
create or replace function crm.watch_segment(p_args json) returns table (status int, body text)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    found_one crm.segment;
    old crm.segment;
begin
    select * into found_one from crm.find_segment(p_args ->> 'segment');
    if found_one.id is null then
        return query select 404, '{"error":"there is no such segment"}';
        return;
    end if;
    -- Wait for a check in progress: then all of its members and events are written.
    select * into old from crm.segment s where s.id = found_one.id for no key update;
    update crm.segment s
    set watch_queue = p_args ->> 'queue',
        watch_initial = coalesce((p_args ->> 'initial')::boolean, false),
        watch_every_s = case when p_args ->> 'queue' is not null
                                  or exists (select from crm.campaign c where c.segment_id = s.id and c.kind = 'entering')
                             then coalesce((p_args ->> 'everySeconds')::int, s.watch_every_s, 10) end
    where s.id = found_one.id
    returning * into found_one;
    -- Events that were not sent to the old queue must not go to the new one.
    if old.watch_queue is distinct from found_one.watch_queue then
        delete from crm.segment_outbox o where o.segment_id = found_one.id;
    end if;
    -- A segment that is already watched has its members: report them now instead of with the first check.
    if found_one.watch_queue is not null and found_one.watch_initial and found_one.watched_since is not null
       and (old.watch_queue is distinct from found_one.watch_queue or not old.watch_initial) then
        insert into crm.segment_outbox (segment_id, customer_uuid, entered)
        select m.segment_id, m.customer_uuid, true from crm.segment_member m where m.segment_id = found_one.id;
    end if;
    perform crm.forget_members(found_one.id);
    select * into found_one from crm.segment s where s.id = found_one.id;
    return query select 200, crm.segment_json(found_one)::text;
end
$$;
