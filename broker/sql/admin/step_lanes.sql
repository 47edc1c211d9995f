-- queen.step_lanes: the number of partitions in one step of a long operation.
--
-- called by  operations on all partitions of a queue or group, which run in steps of one transaction each
-- The setting queen.step_lanes changes it for a session (tests).
create or replace function queen.step_lanes()
returns int
language sql stable
as $$
    select coalesce(nullif(current_setting('queen.step_lanes', true), '')::int, 2000)
$$;
