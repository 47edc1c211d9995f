-- crm.adjust_wallets: adds to balances; an unknown wallet is created with the amount as its balance.
--
-- called by: crm.ingest, after crm.write_wallets          out: -          locks: the rows          raises: 22xxx
-- in:  an array of objects, one per wallet, with the members named below; delta is the sum of its adjustments
create or replace function crm.adjust_wallets(p_rows jsonb) returns void
language plpgsql
as $$
begin
    insert into crm.wallet_account as t (id, customer_id, balance, last_topup_at, updated_at)
    select r.id, r.customer_id, r.delta, r.last_topup_at, r.at
      from jsonb_to_recordset(p_rows) r(id uuid, customer_id uuid, delta numeric, last_topup_at timestamptz, at timestamptz)
        on conflict (id) do update
       set customer_id = excluded.customer_id,
           balance = t.balance + excluded.balance,
           last_topup_at = coalesce(excluded.last_topup_at, t.last_topup_at),
           updated_at = excluded.updated_at;
end
$$;
