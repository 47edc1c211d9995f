-- crm.stale_copies(customers): the customers whose copied columns in the model of transactions differ from the model of
-- attributes.
--
-- Two columns are in both models: is_active_subscriber and location_codes (here shortened by crm.few_codes).  An index over
-- them and the days of transactions replaces a join of all subscribers with all frequent visitors.  They change rarely, so
-- they are not a part of the model of transactions: the whole row of a changed customer is recomputed.
-- called by: crm.ingest, crm.changed; both after crm.changed_attributes, which locks these customers' rows (or their
--            substitutes) until commit: of two transactions with the same customer, the second compares with the result of the first
-- in:  customers whose subscriptions were written
-- out: some of them, never null
-- locks: none          raises: nothing of its own
-- needs: few_codes
create or replace function crm.stale_copies(p_customers uuid[]) returns uuid[]
language plpgsql
as $$
declare
    attributes record;
    transactions record;
begin
    select live_version is not null as live, view_version is not null as view, next_live_version is not null as next
      into transactions from crm.read_model where read_model.model = 'customer_transactions';
    -- A table of an older definition lacks the columns and will be replaced.
    if not transactions.next and transactions.live
       and not exists (select from pg_attribute
                        where attrelid = to_regclass('crm.customer_transactions_live') and attname = 'few_location_codes' and not attisdropped) then
        return '{}';
    end if;
    select live_version is not null as live into attributes from crm.read_model where read_model.model = 'customer_attributes';
    -- A table that is being filled is not complete yet.  A view may be about to be replaced by one that was started before
    -- this transaction, so its current content proves nothing.
    if transactions.next or not transactions.live or not attributes.live then
        return case when transactions.next or transactions.live or transactions.view then p_customers else '{}' end;
    end if;
    return array(select t.customer_uuid
                   from crm.customer_transactions_live t
                   join crm.customer_attributes_live a on a.id = t.id
                  where t.customer_uuid = any (p_customers)
                    and (t.is_active_subscriber, t.few_location_codes) is distinct from (a.is_active_subscriber, crm.few_codes(a.location_codes)));
end
$$;
