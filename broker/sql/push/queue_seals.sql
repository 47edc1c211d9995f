-- queen.queue_seals: whether a queue has encryptionEnabled; it does not change before the end of the transaction.
--
-- called by  queen.create_schedule, queen.change_schedule
-- locks      the advisory lock of sealing the queue's schedules, shared; the queue's row, shared: configuring it waits, and then
--            sees what was stored
--
-- A queue that is not there has no row to lock, and may be made with the option before this transaction ends.  So whoever seals what is
-- in clear (queen.seal_schedules) waits for the advisory lock.  The row is read by a statement of its own, as it is once the lock is had.
create or replace function queen.queue_seals(p_name text)
returns boolean
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock_shared(737004, hashtext(p_name));
    return coalesce((select q.encryption_enabled from queen.queues q where q.name = p_name for share), false);
end
$$;
