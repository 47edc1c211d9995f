-- queen.await_pushed: show that pops are parked, so that queen.notify_pushed notifies; or that none is.
--
-- called by  broker/src/server/sql_wake.c
-- in         p_await: whether pops are parked
-- out        whether sessions see it. It ends with the connection
-- locks      advisory 737030, shared, of the session; never waits
create or replace function queen.await_pushed(p_await boolean)
returns boolean
language plpgsql
as $$
begin
    if p_await then
        return pg_try_advisory_lock_shared(737030, 0);
    end if;
    perform pg_advisory_unlock_shared(737030, 0);
    return false;
end
$$;
