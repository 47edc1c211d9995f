-- crm.customer_transactions_definition(): the query of crm.customer_transactions_mv and crm.customer_transactions_live: one
-- row per customer with attributes from transactions, visits and purchases.  The rules and the two uses are those of
-- crm.customer_attributes_definition().
--
-- "In the last N days" without a clock: a column `transactions_30d` would be wrong the next day unless every customer were
-- updated every day.  Instead the row contains the days, and the query compares them with the current day:
--   last_X_days         the UTC days of the last 10 X, newest first, one entry per X.
--                       at least 3 in the last 30 days:  last_transaction_days[3] > today - 30
--                       (fewer: is null or <=).  The most common one is a column, third_last_transaction_on, because an index on a
--                       column supports an index-only count and an index on an expression does not.
-- Counts over 10 and sums of the last days use the write model.
--
-- is_active_subscriber and few_location_codes are copies of columns of the other model, for an index over them and the
-- above: see crm.stale_copies.  few_location_codes is null for a customer with more locations than fit into an index entry
-- (crm.few_codes).
-- called by: crm.read_model_query
-- in: -          out: the text of a select          locks: none          raises: nothing
create or replace function crm.customer_transactions_definition() returns text
language sql immutable
set search_path = crm, pg_temp
as $fn$ select $def$
select c.id,
       c.customer_uuid,
       -- copies: crm.subscription_account
       coalesce(s.is_active_subscriber, false) as is_active_subscriber,
       crm.few_codes(s.location_codes)         as few_location_codes,
       -- transactions: crm.transaction_log
       coalesce(t.transaction_count, 0)        as transaction_count,
       coalesce(t.sale_count, 0)               as sale_count,
       coalesce(t.refund_count, 0)             as refund_count,
       coalesce(t.discounted_sale_count, 0)    as discounted_sale_count,
       coalesce(t.tipped_sale_count, 0)        as tipped_sale_count,
       coalesce(t.total_spent, 0)              as total_spent,
       coalesce(t.total_refunded, 0)           as total_refunded,
       coalesce(t.total_spent, 0) - coalesce(t.total_refunded, 0) as net_spent,
       coalesce(t.total_discount, 0)           as total_discount,
       coalesce(t.total_tip, 0)                as total_tip,
       t.average_sale,
       t.largest_sale,
       t.smallest_sale,
       t.first_transaction_at,
       t.last_transaction_at,
       t.last_sale_at,
       t.last_refund_at,
       t.last_transaction_location,
       t.last_payment_method,
       coalesce(t.transaction_locations, '{}') as transaction_locations,
       coalesce(t.payment_methods, '{}')       as payment_methods,
       coalesce(t.last_transaction_days, '{}') as last_transaction_days,
       t.last_transaction_days[3]              as third_last_transaction_on,
       -- visits: crm.visit_log
       coalesce(v.visit_count, 0)              as visit_count,
       coalesce(v.rated_visit_count, 0)        as rated_visit_count,
       v.average_rating,
       v.lowest_rating,
       v.last_rating,
       coalesce(v.visit_minutes, 0)            as visit_minutes,
       v.average_visit_minutes,
       v.first_visit_at,
       v.last_visit_at,
       v.last_visit_location,
       v.last_service,
       v.favourite_location,
       v.favourite_service,
       coalesce(v.visit_locations, '{}')       as visit_locations,
       coalesce(v.services, '{}')              as services,
       coalesce(v.last_visit_days, '{}')       as last_visit_days,
       -- purchases: crm.purchase_log
       coalesce(b.purchase_count, 0)           as purchase_count,
       coalesce(b.purchased_units, 0)          as purchased_units,
       coalesce(b.purchase_spend, 0)           as purchase_spend,
       b.average_purchase,
       b.largest_purchase,
       b.first_purchase_at,
       b.last_purchase_at,
       b.last_product_id,
       b.last_category,
       b.favourite_category,
       coalesce(b.product_ids, '{}')           as product_ids,
       coalesce(b.purchase_categories, '{}')   as purchase_categories,
       coalesce(b.purchase_locations, '{}')    as purchase_locations,
       coalesce(b.last_purchase_days, '{}')    as last_purchase_days
from crm.customer c
left join (
    select customer_id,
           bool_or(status = 1)                                         as is_active_subscriber,
           array_agg(distinct location_code order by location_code)
               filter (where location_code is not null)                as location_codes
    from crm.subscription_account
    where {only customer_id}
    group by customer_id
) s on s.customer_id = c.customer_uuid
left join (
    select customer_id,
           count(*)::int                                               as transaction_count,
           count(*) filter (where kind = 'sale')::int                  as sale_count,
           count(*) filter (where kind = 'refund')::int                as refund_count,
           count(*) filter (where kind = 'sale' and discount > 0)::int as discounted_sale_count,
           count(*) filter (where kind = 'sale' and tip > 0)::int      as tipped_sale_count,
           sum(amount) filter (where kind = 'sale')                    as total_spent,
           sum(amount) filter (where kind = 'refund')                  as total_refunded,
           sum(discount) filter (where kind = 'sale')                  as total_discount,
           sum(tip) filter (where kind = 'sale')                       as total_tip,
           round(avg(amount) filter (where kind = 'sale'), 2)          as average_sale,
           max(amount) filter (where kind = 'sale')                    as largest_sale,
           min(amount) filter (where kind = 'sale')                    as smallest_sale,
           min(created_at)                                             as first_transaction_at,
           max(created_at)                                             as last_transaction_at,
           max(created_at) filter (where kind = 'sale')                as last_sale_at,
           max(created_at) filter (where kind = 'refund')              as last_refund_at,
           max(location_code) filter (where nth_last = 1)              as last_transaction_location,
           max(payment_method) filter (where nth_last = 1)             as last_payment_method,
           array_agg(distinct location_code order by location_code)
               filter (where location_code is not null)                as transaction_locations,
           array_agg(distinct payment_method order by payment_method)
               filter (where payment_method is not null)               as payment_methods,
           array_agg((created_at at time zone 'UTC')::date order by nth_last)
               filter (where nth_last <= 10)                           as last_transaction_days
    from (
        select customer_id, location_code, kind, payment_method, amount, discount, tip, created_at,
               row_number() over (partition by customer_id order by created_at desc, id desc) as nth_last
        from crm.transaction_log
        where {only customer_id}
    ) newest_first
    group by customer_id
) t on t.customer_id = c.customer_uuid
left join (
    select customer_id,
           count(*)::int                                               as visit_count,
           count(rating)::int                                          as rated_visit_count,
           round(avg(rating), 2)                                       as average_rating,
           min(rating)                                                 as lowest_rating,
           max(rating) filter (where nth_last = 1)                     as last_rating,
           sum(duration_minutes)                                       as visit_minutes,
           round(avg(duration_minutes), 1)                             as average_visit_minutes,
           min(visited_at)                                             as first_visit_at,
           max(visited_at)                                             as last_visit_at,
           max(location_code) filter (where nth_last = 1)              as last_visit_location,
           max(service) filter (where nth_last = 1)                    as last_service,
           -- of equally frequent ones the first in order
           mode() within group (order by location_code)                as favourite_location,
           mode() within group (order by service)                      as favourite_service,
           array_agg(distinct location_code order by location_code)
               filter (where location_code is not null)                as visit_locations,
           array_agg(distinct service order by service)
               filter (where service is not null)                      as services,
           array_agg((visited_at at time zone 'UTC')::date order by nth_last)
               filter (where nth_last <= 10)                           as last_visit_days
    from (
        select customer_id, location_code, service, duration_minutes, rating, visited_at,
               row_number() over (partition by customer_id order by visited_at desc, id desc) as nth_last
        from crm.visit_log
        where {only customer_id}
    ) newest_first
    group by customer_id
) v on v.customer_id = c.customer_uuid
left join (
    select customer_id,
           count(*)::int                                               as purchase_count,
           sum(quantity)                                               as purchased_units,
           sum(amount)                                                 as purchase_spend,
           round(avg(amount), 2)                                       as average_purchase,
           max(amount)                                                 as largest_purchase,
           min(purchased_at)                                           as first_purchase_at,
           max(purchased_at)                                           as last_purchase_at,
           max(product_id) filter (where nth_last = 1)                 as last_product_id,
           max(category) filter (where nth_last = 1)                   as last_category,
           mode() within group (order by category)                     as favourite_category,
           array_agg(distinct product_id order by product_id)
               filter (where product_id is not null)                   as product_ids,
           array_agg(distinct category order by category)
               filter (where category is not null)                     as purchase_categories,
           array_agg(distinct location_code order by location_code)
               filter (where location_code is not null)                as purchase_locations,
           array_agg((purchased_at at time zone 'UTC')::date order by nth_last)
               filter (where nth_last <= 10)                           as last_purchase_days
    from (
        select customer_id, product_id, category, location_code, quantity, amount, purchased_at,
               row_number() over (partition by customer_id order by purchased_at desc, id desc) as nth_last
        from crm.purchase_log
        where {only customer_id}
    ) newest_first
    group by customer_id
) b on b.customer_id = c.customer_uuid
where {only c.customer_uuid}
$def$ $fn$;
