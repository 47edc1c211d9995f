-- queen.queue_seals: whether a queue has encryptionEnabled; it does not change before the end of the transaction.
--
-- called by  queen.create_schedule, queen.change_schedule
-- locks      the queue's row, shared: configuring it waits, and then sees what was stored
create or replace function queen.queue_seals(p_name text)
returns boolean
language sql
as $$
    select coalesce((select q.encryption_enabled from queen.queues q where q.name = p_name for share), false)
$$;
