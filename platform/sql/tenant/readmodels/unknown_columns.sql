-- crm.unknown_columns(): columns of the write model that no read model contains.  A filter on them would silently use the
-- slow path.  The columns that a view reads come from PostgreSQL's own dependencies.
-- called by: the view crm.mv_refresh_status
-- in: -          out: table.column, ordered; null while a view is not built          locks: none          raises: nothing
create or replace function crm.unknown_columns() returns text[]
language sql stable
set search_path = crm, pg_temp
as $$
    select case when exists (select from crm.read_model where view_version is null) then null else
        array(
            select c.relname || '.' || a.attname
            from pg_class c
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            where c.relnamespace = 'crm'::regnamespace
              and c.relname in ('customer', 'subscription_account', 'wallet_account', 'package_account',
                                'transaction_log', 'visit_log', 'purchase_log')
              -- Excluded on purpose: free text, keys of single rows, previous customers, and times of the last write.
              and (c.relname, a.attname) not in (('customer', 'note'))
              and a.attname not in ('id', 'previous_customer_id')
              and (a.attname <> 'updated_at' or c.relname = 'customer')
              and not exists (
                  select
                  from pg_rewrite w
                  join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
                  where w.ev_class in (to_regclass('crm.customer_attributes_mv'),
                                       to_regclass('crm.customer_transactions_mv'))
                    and d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and d.refobjsubid = a.attnum)
            order by 1)
        end
$$;
