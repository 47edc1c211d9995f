-- crm.adjust_wallets: adds to balances; an unknown wallet is created with the amount as its balance.
--
-- An adjustment counts whatever its time is.  It does not change the customer of a wallet whose record has arrived, nor the
-- time of the record.
-- called by: crm.ingest, after crm.write_wallets          locks: the rows          raises: 22xxx
-- in:  an array of objects, one per wallet, with the members named below; delta is the sum of its adjustments
-- out: the customers of the wallets, and their previous customers
create or replace function crm.adjust_wallets(p_rows jsonb) returns uuid[]
language plpgsql
as $$
declare
    affected uuid[];
begin
    with written as (
        insert into crm.wallet_account as t (id, customer_id, balance, last_topup_at, updated_at)
        select r.id, r.customer_id, r.delta, r.last_topup_at, r.at
          from jsonb_to_recordset(p_rows) r(id uuid, customer_id uuid, delta numeric, last_topup_at timestamptz, at timestamptz)
            on conflict (id) do update
           set previous_customer_id = case when t.status is null then nullif(t.customer_id, excluded.customer_id) end,
               customer_id = case when t.status is null then excluded.customer_id else t.customer_id end,
               balance = t.balance + excluded.balance,
               last_topup_at = greatest(t.last_topup_at, excluded.last_topup_at),
               updated_at = case when t.status is null then greatest(t.updated_at, excluded.updated_at) else t.updated_at end
        returning t.customer_id, t.previous_customer_id
    )
    select array_agg(u) into affected from written w, unnest(array[w.customer_id, w.previous_customer_id]) u where u is not null;
    return coalesce(affected, '{}');
end
$$;
