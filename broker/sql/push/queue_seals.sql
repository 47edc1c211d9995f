-- queen.queue_seals: whether a queue has encryptionEnabled. The answer does not change before the end of the transaction.
--
-- called by  queen.create_schedule, queen.change_schedule
-- locks      the advisory lock for sealing the queue's schedules, shared; the queue's row, shared: configuring the queue waits, and
--            then sees what was stored
--
-- A queue that does not exist has no row to lock, and may be created with the option before this transaction ends. Therefore
-- queen.seal_schedules waits for the advisory lock. The row is read by a separate statement, after the lock was acquired.
create or replace function queen.queue_seals(p_name text)
returns boolean
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock_shared(737004, hashtext(p_name));
    return coalesce((select q.encryption_enabled from queen.queues q where q.name = p_name for share), false);
end
$$;
