-- queen.step_rows: the number of rows that one step of a long operation removes.
--
-- called by  queen.forget_lanes, queen.forget_deleted, queen.clear_queue
-- The setting queen.step_rows changes it for a session (tests).
create or replace function queen.step_rows()
returns int
language sql stable
as $$
    select coalesce(nullif(current_setting('queen.step_rows', true), '')::int, 20000)
$$;
