-- crm.write_wallets: writes the current state of wallets, unless a newer event has written them.
--
-- called by: crm.ingest          out: their previous customers          locks: the rows          raises: 22xxx, 23xxx
-- in:  an array of objects, one per row, with the members named below; an absent member becomes null
create or replace function crm.write_wallets(p_rows jsonb) returns uuid[]
language plpgsql
as $$
declare
    moved uuid[];
begin
    with written as (
        insert into crm.wallet_account as t (id, customer_id, kind, balance, currency, last_topup_at, expires_at,
                status, updated_at)
        select r.id, r.customer_id, r.kind, r.balance, r.currency, r.last_topup_at, r.expires_at, r.status, r.at
          from jsonb_to_recordset(p_rows) r(id uuid, customer_id uuid, kind text, balance numeric, currency text,
                 last_topup_at timestamptz, expires_at timestamptz, status smallint, at timestamptz)
            on conflict (id) do update
           set (previous_customer_id, customer_id, kind, balance, currency, last_topup_at, expires_at, status, updated_at) =
               (nullif(t.customer_id, excluded.customer_id), excluded.customer_id, excluded.kind, excluded.balance, excluded.currency, excluded.last_topup_at,
                excluded.expires_at, excluded.status, excluded.updated_at)
         where excluded.updated_at >= t.updated_at or t.status is null -- null: only adjustments have arrived, which state no record
     returning t.previous_customer_id
    )
    select array_agg(previous_customer_id) filter (where previous_customer_id is not null) into moved from written;
    return coalesce(moved, '{}');
end
$$;
