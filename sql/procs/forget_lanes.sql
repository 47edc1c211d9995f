-- queen.forget_lanes: what goes with lanes that are deleted, by whatever statement.
--
-- needs: tell
-- called by  a statement trigger on queen.lanes (below)
-- locks      the lanes are deleted by now, so pushes that were in flight have ended and none can follow; then
--            consumers in num order, so that claims and acknowledgements under way end first, those of retry lanes among them: an
--            acknowledgement may be of both; then the retry lanes: nobody makes new ones any more
create or replace function queen.forget_lanes()
returns trigger
language plpgsql
as $$
declare
    v_lanes     bigint[];
    v_consumers bigint[];
begin
    select array_agg(num) into v_lanes from gone;
    if v_lanes is null then
        return null;
    end if;
    delete from queen.segments where lane = any (v_lanes);
    delete from queen.message_keys where lane = any (v_lanes);
    delete from queen.scheduled where lane = any (v_lanes);
    delete from queen.skips where lane = any (v_lanes);
    select array_agg(c.num) filter (where c.lane = any (v_lanes)) into v_consumers
      from (select num, lane from queen.consumers
             where lane = any (v_lanes || array(select r.num from queen.lanes r where r.origin = any (v_lanes)))
             order by num for update) c;
    delete from queen.consumers where num = any (v_consumers);
    delete from queen.consumer_states where consumer = any (v_consumers);
    delete from queen.dead_letter_queue where lane = any (v_lanes);
    delete from queen.lane_due where lane = any (v_lanes);
    delete from queen.retention_history where partition_id = any (array(select id from gone));
    delete from queen.message_traces where lane = any (v_lanes);
    delete from queen.correlations where lane = any (v_lanes);
    delete from queen.attempts where lane = any (v_lanes);
    delete from queen.lanes where origin = any (v_lanes);
    perform queen.tell(-1, v_lanes);
    return null;
end
$$;

create or replace trigger forget_lanes after delete on queen.lanes
    referencing old table as gone
    for each statement execute function queen.forget_lanes();
