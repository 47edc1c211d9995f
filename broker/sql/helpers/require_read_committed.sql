-- queen.require_read_committed: reject transactions that cannot see changes made before they got their locks.
--
-- called by  the functions that take JSON, before anything else
-- raises     QN003. The procedures lock rows that are never updated, and read the newest versions from other tables. With an
--            old snapshot they would wait for the lock and then act on an outdated state.
create or replace function queen.require_read_committed()
returns void
language plpgsql
as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception 'the transaction must be READ COMMITTED, this one is %',
                        upper(current_setting('transaction_isolation'))
            using errcode = 'QN003',
                  hint = 'Use BEGIN ISOLATION LEVEL READ COMMITTED for the transaction that calls queen.*';
    end if;
end
$$;
