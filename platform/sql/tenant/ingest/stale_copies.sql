-- crm.stale_copies(customers): those of the customers of whom the model of transactions has other copies than what the model of
-- attributes says now.
--
-- Two columns are in both models, is_active_subscriber and location_codes (here as crm.few_codes cuts it down): an index over them and the days of transactions answers what else would be
-- a join of all subscribers with all who came often.  They change seldom, so they are no part of the model of transactions: who changed
-- is computed whole.
-- called by: crm.ingest, crm.changed; both after crm.changed_attributes, which holds these customers' rows (or, of those who have none, what stands
--            for it) until the end: of two transactions with the same customer, the second compares with what the first has left
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
    -- A table of an older definition does not have them, and will be replaced.
    if not transactions.next and transactions.live
       and not exists (select from pg_attribute
                        where attrelid = to_regclass('crm.customer_transactions_live') and attname = 'few_location_codes' and not attisdropped) then
        return '{}';
    end if;
    select live_version is not null as live into attributes from crm.read_model where read_model.model = 'customer_attributes';
    -- A table that is being filled is not complete yet.  A view may be about to be replaced by one that was begun before this
    -- transaction: what it says now proves nothing.
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
