-- queen.find_schedule: the id of a recurring message by its id or name; null if there is none.
--
-- called by  the functions behind /api/v1/schedules/:id
create or replace function queen.find_schedule(p_text text)
returns uuid
language sql stable
as $$
    select s.id from queen.schedules s where s.id::text = lower(p_text) or s.name = p_text
     order by s.id::text = lower(p_text) desc limit 1
$$;
