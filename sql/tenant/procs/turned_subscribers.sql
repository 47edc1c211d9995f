-- crm.turned_subscribers(customers): those of the customers who may have become subscribers, or are none any more, and of whom the model
-- of transactions says otherwise.
--
-- That model has one column that does not come from its own tables, is_active_subscriber: an index over both answers what
-- else would be a join of all subscribers with all who came often.  It changes seldom, so it is no part of its own: who turned is computed whole.
-- called by: crm.ingest_2, crm.changed; both after crm.changed_attributes, which holds these customers' rows (or, of those who have none, what stands
--            for it) until the end: of two transactions with the same customer, the second compares with what the first has left
-- in:  customers whose subscriptions were written
-- out: some of them, never null
-- locks: none          raises: nothing of its own
create or replace function crm.turned_subscribers(p_customers uuid[]) returns uuid[]
language plpgsql
as $$
declare
    model record;
begin
    select live_version is not null as live, view_version is not null as view, next_live_version is not null as next
      into model from crm.read_model where read_model.model = 'customer_transactions';
    -- A table that is being filled is not complete yet.  A view may be about to be replaced by one that was begun before this
    -- transaction: what it says now proves nothing.
    if model.next or (model.view and not model.live) then
        return p_customers;
    end if;
    -- A table of an older definition does not have the column, and will be replaced.
    if not model.live or not exists (select from pg_attribute
                                      where attrelid = to_regclass('crm.customer_transactions_live')
                                        and attname = 'is_active_subscriber' and not attisdropped) then
        return '{}';
    end if;
    return array(select l.customer_uuid
                   from crm.customer_transactions_live l
                  where l.customer_uuid = any (p_customers)
                    and l.is_active_subscriber
                        is distinct from exists (select from crm.subscription_account s
                                                  where s.customer_id = l.customer_uuid and s.status = 1));
end
$$;
