-- crm.changed_transactions(whole, transactions, visits, purchases): reports that data of these customers behind the read
-- model customer_transactions changed in this transaction.  Like crm.changed_attributes, for the other model.
-- called by: crm.ingest, crm.changed
-- in:  whole                         customers for whom anything may have changed, including creation and deletion
--      transactions ... purchases    those whose rows of that table were written
--      none is null; order and repetitions do not matter
-- out: -
-- locks: advisory 7642/changes shared, until commit; then advisory 7644 / hash for customers without a row, and rows of the
--        live table in the order of id
-- raises: nothing of its own
create or replace function crm.changed_transactions(p_whole uuid[], p_transactions uuid[], p_visits uuid[], p_purchases uuid[])
returns void
language plpgsql
as $$
declare
    parts uuid[] := p_transactions || p_visits || p_purchases;
    model record;
    done text;
begin
    -- Assignments instead of `perform`, as in crm.ingest.
    done := pg_advisory_xact_lock_shared(7642, crm.model_lock('changes'));
    done := nextval('crm.customer_transactions_changes');
    done := setval('crm.customer_transactions_changed', (extract(epoch from clock_timestamp()) * 1000000)::bigint);
    select live_version is not null as live, live_in_parts as in_parts, next_live_version is not null as next
      into model from crm.read_model where read_model.model = 'customer_transactions';
    if model.live and not model.in_parts then
        done := crm.recompute_customer_transactions(p_whole || parts);
    elsif model.live then
        done := crm.recompute_customer_transactions_parts(p_whole, p_transactions, p_visits, p_purchases);
    end if;
    if model.next then
        done := crm.recompute_customer_transactions_next(p_whole || parts);
    end if;
end
$$;
