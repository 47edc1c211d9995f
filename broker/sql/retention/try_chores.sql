-- queen.try_chores: may this transaction do the background work of the cluster?
--
-- called by  broker/src/broker/chores.c, first in the transaction of every chore
-- out        true for one transaction at a time; never waits
create or replace function queen.try_chores()
returns boolean
language sql volatile
as $$
    select pg_try_advisory_xact_lock(737001)
$$;
