-- queen.try_chores: take the advisory lock for background work, which only one transaction on the database can have.
--
-- called by  broker/src/broker/chores.c, first in the transaction of every chore
-- out        true for one transaction at a time; never waits
create or replace function queen.try_chores()
returns boolean
language sql volatile
as $$
    select pg_try_advisory_xact_lock(737001)
$$;
