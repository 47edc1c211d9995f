-- crm.changed_attributes(whole, customers, subscriptions, wallets, packages): reports that data of these customers behind
-- the read model customer_attributes changed in this transaction.
--
-- Counts the change, records its time, and updates the live table for these customers, so that a segment sees exactly the
-- committed data.  Call it last: it computes from the rows that the transaction has written.
-- called by: crm.ingest, crm.changed
-- in:  whole                     customers for whom anything may have changed, including deletion
--      customers ... packages    those whose rows of that table were written
--      none is null; order and repetitions do not matter
-- out: -
-- locks: advisory 7642/changes shared, until commit; then advisory 7643 / hash for customers without a row, and rows of the
--        live table in the order of id
-- raises: nothing of its own
create or replace function crm.changed_attributes(p_whole uuid[], p_customers uuid[], p_subscriptions uuid[], p_wallets uuid[],
                                                  p_packages uuid[]) returns void
language plpgsql
as $$
declare
    parts uuid[] := p_customers || p_subscriptions || p_wallets || p_packages;
    model record;
    done text;
begin
    -- Assignments instead of `perform`, as in crm.ingest.
    done := pg_advisory_xact_lock_shared(7642, crm.model_lock('changes'));
    done := nextval('crm.customer_attributes_changes');
    done := setval('crm.customer_attributes_changed', (extract(epoch from clock_timestamp()) * 1000000)::bigint);
    select live_version is not null as live, live_in_parts as in_parts, next_live_version is not null as next
      into model from crm.read_model where read_model.model = 'customer_attributes';
    if model.live and not model.in_parts then
        done := crm.recompute_customer_attributes(p_whole || parts);
    elsif model.live then
        done := crm.recompute_customer_attributes_parts(p_whole, p_customers, p_subscriptions, p_wallets, p_packages);
    end if;
    if model.next then
        done := crm.recompute_customer_attributes_next(p_whole || parts);
    end if;
end
$$;
