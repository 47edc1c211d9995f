-- queen.notify_pushed: let brokers deliver a push from SQL at once, instead of at their next poll.
--
-- called by  queen.push_messages_v2, queen.push_messages_v3, queen.execute_transaction_v2; never by a broker's own pushes
-- in         p_queues: queues that got messages; null and repeated names are ignored
-- locks      none that outlasts the call, but a transaction that has notified commits under a lock of the whole server, which
--            PostgreSQL takes for the order of notifications
--
-- Because of that lock, it notifies only while a broker has parked pops. A broker shows that by a shared advisory lock
-- (broker/src/server/sql_wake.c), which it gives up while notifications come in quick succession.
-- PostgreSQL cannot prepare a transaction that has notified. Where transactions may be prepared (max_prepared_transactions), it
-- therefore notifies only if queen.notify is on. queen.notify = off turns it off for a session, a role or a database.
create or replace function queen.notify_pushed(p_queues text[])
returns void
language plpgsql
as $$
begin
    if coalesce(nullif(current_setting('queen.notify', true), ''),
                case when current_setting('max_prepared_transactions')::int > 0 then 'off' else 'on' end) in ('off', 'false', 'no', '0') then
        return;
    end if;
    if pg_try_advisory_lock(737030, 0) then -- no broker waits
        perform pg_advisory_unlock(737030, 0);
        return;
    end if;
    -- PostgreSQL sends equal notifications of a transaction once.
    perform pg_notify('queen_pushed', case when octet_length(q) < 4000 then q else '' end)
       from (select distinct q from unnest(p_queues) q where q is not null) d;
end
$$;
