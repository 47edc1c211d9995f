-- queen.require_read_committed: refuse transactions that cannot see what happened before their locks.
--
-- called by  the JSON-taking functions, first of all
-- raises     QN003.  The core locks rows that are never updated, and reads newer versions beside them: under an
--            old snapshot it would wait for the lock and then act on a state that is history.
create or replace function queen.require_read_committed()
returns void
language plpgsql
as $$
begin
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        raise exception 'Queen works in READ COMMITTED transactions only, this one is %',
                        upper(current_setting('transaction_isolation'))
            using errcode = 'QN003',
                  hint = 'Use BEGIN ISOLATION LEVEL READ COMMITTED for the transaction that calls queen.*';
    end if;
end
$$;
