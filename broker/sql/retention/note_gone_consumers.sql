-- queen.note_gone_consumers: count the statistics of lanes that lost a consumer group again.
--
-- needs: notify_lanes
-- called by  a statement trigger on queen.consumers (below)
create or replace function queen.note_gone_consumers()
returns trigger
language plpgsql
as $$
begin
    if exists (select from gone) then
        perform queen.notify_lanes(-1, array(select distinct g.lane from gone g));
    end if;
    return null;
end
$$;

create or replace trigger note_gone_consumers after delete on queen.consumers
    referencing old table as gone
    for each statement execute function queen.note_gone_consumers();
