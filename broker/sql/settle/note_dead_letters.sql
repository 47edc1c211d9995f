-- queen.note_dead_letters: count dead letters as they are added and removed.
--
-- needs: notify_lanes
-- called by  statement triggers on queen.dead_letter_queue (below)
create or replace function queen.note_dead_letters()
returns trigger
language plpgsql
as $$
begin
    if exists (select from touched) then
        perform queen.notify_lanes(case tg_op when 'INSERT' then -2 else -3 end, array(select t.lane from touched t));
    end if;
    return null;
end
$$;

create or replace trigger note_new_dead_letters after insert on queen.dead_letter_queue
    referencing new table as touched
    for each statement execute function queen.note_dead_letters();
create or replace trigger note_gone_dead_letters after delete on queen.dead_letter_queue
    referencing old table as touched
    for each statement execute function queen.note_dead_letters();
