-- crm.customer_attributes_definition(): the query of crm.customer_attributes_mv and crm.customer_attributes_live: one row
-- per customer with attributes from subscriptions, wallets and packages.
--
-- One text, two uses: crm.read_model_query() replaces {only column} by `true` to compute all customers, and by a condition
-- on the given ones when the write path recomputes a few.  So the view and the live table cannot disagree. The checksum of
-- the text is the version of the definition: an edit rebuilds every tenant's models next to the old ones and swaps them.
-- platform/docs/read-models.md describes the columns.
--
-- Rules: no clock (a row changes only when its customer's data does); arrays are distinct, ordered and never null; every
-- aggregate is deterministic; `id` is unique; no sum is cast to a narrower type than PostgreSQL gives it.
-- called by: crm.read_model_query
-- in: -          out: the text of a select          locks: none          raises: nothing
create or replace function crm.customer_attributes_definition() returns text
language sql immutable
set search_path = crm, pg_temp
as $fn$ select $def$
select c.id,
       c.customer_uuid,
       -- the customer: crm.customer
       c.first_name,
       c.last_name,
       c.email,
       c.phone,
       c.gender,
       c.city,
       c.postal_code,
       c.country,
       c.language,
       c.source,
       c.home_location,
       c.birth_date,
       (extract(month from c.birth_date) * 100 + extract(day from c.birth_date))::int as birthday, -- 1231: December 31
       c.tags,
       c.email_opt_in,
       c.sms_opt_in,
       c.is_blocked,
       coalesce(c.email, '') <> '' as has_email,
       coalesce(c.phone, '') <> '' as has_phone,
       c.created_at,
       c.updated_at,
       -- subscriptions: crm.subscription_account
       coalesce(s.is_active_subscriber, false)      as is_active_subscriber,
       coalesce(s.subscription_count, 0)            as subscription_count,
       coalesce(s.active_subscription_count, 0)     as active_subscription_count,
       coalesce(s.paused_subscription_count, 0)     as paused_subscription_count,
       coalesce(s.past_due_subscription_count, 0)   as past_due_subscription_count,
       coalesce(s.cancelled_subscription_count, 0)  as cancelled_subscription_count,
       coalesce(s.location_codes, '{}')             as location_codes,
       coalesce(s.package_ids, '{}')                as package_ids,
       coalesce(s.active_location_codes, '{}')      as active_location_codes,
       coalesce(s.active_package_ids, '{}')         as active_package_ids,
       coalesce(s.billing_periods, '{}')            as billing_periods,
       coalesce(s.subscription_currencies, '{}')    as subscription_currencies,
       coalesce(s.active_subscription_price, 0)     as active_subscription_price,
       s.highest_subscription_price,
       s.average_subscription_price,
       s.first_subscribed_at,
       s.last_subscribed_at,
       s.next_bill_date,
       s.last_cancelled_at,
       -- wallets: crm.wallet_account
       coalesce(w.wallet_count, 0)                  as wallet_count,
       coalesce(w.active_wallet_count, 0)           as active_wallet_count,
       coalesce(w.frozen_wallet_count, 0)           as frozen_wallet_count,
       coalesce(w.wallet_balance, 0)                as wallet_balance,
       coalesce(w.active_wallet_balance, 0)         as active_wallet_balance,
       w.highest_wallet_balance,
       w.lowest_wallet_balance,
       coalesce(w.wallet_kinds, '{}')               as wallet_kinds,
       coalesce(w.wallet_currencies, '{}')          as wallet_currencies,
       w.last_topup_at,
       w.wallet_expires_at,
       -- packages: crm.package_account
       coalesce(p.package_count, 0)                 as package_count,
       coalesce(p.active_package_count, 0)          as active_package_count,
       coalesce(p.used_up_package_count, 0)         as used_up_package_count,
       coalesce(p.expired_package_count, 0)         as expired_package_count,
       coalesce(p.package_units, 0)                 as package_units,
       coalesce(p.package_units_left, 0)            as package_units_left,
       coalesce(p.package_spend, 0)                 as package_spend,
       p.average_package_price,
       coalesce(p.bought_package_ids, '{}')         as bought_package_ids,
       coalesce(p.active_bought_package_ids, '{}')  as active_bought_package_ids,
       coalesce(p.package_location_codes, '{}')     as package_location_codes,
       p.first_package_at,
       p.last_package_at,
       p.package_expires_at
from crm.customer c
left join (
    select customer_id,
           bool_or(status = 1)                                        as is_active_subscriber,
           count(*)::int                                              as subscription_count,
           count(*) filter (where status = 1)::int                    as active_subscription_count,
           count(*) filter (where status = 2)::int                    as paused_subscription_count,
           count(*) filter (where status = 3)::int                    as past_due_subscription_count,
           count(*) filter (where status = 4)::int                    as cancelled_subscription_count,
           array_agg(distinct location_code order by location_code)
               filter (where location_code is not null)               as location_codes,
           array_agg(distinct package_id order by package_id)
               filter (where package_id is not null)                  as package_ids,
           array_agg(distinct location_code order by location_code)
               filter (where location_code is not null and status = 1) as active_location_codes,
           array_agg(distinct package_id order by package_id)
               filter (where package_id is not null and status = 1)   as active_package_ids,
           array_agg(distinct billing_period order by billing_period)
               filter (where billing_period is not null)              as billing_periods,
           array_agg(distinct currency order by currency)
               filter (where currency is not null)                    as subscription_currencies,
           sum(price) filter (where status = 1)                       as active_subscription_price,
           max(price)                                                 as highest_subscription_price,
           round(avg(price), 2)                                       as average_subscription_price,
           min(started_at)                                            as first_subscribed_at,
           max(started_at)                                            as last_subscribed_at,
           -- the next one to come: what is paused or cancelled is not billed
           min(next_bill_date) filter (where status in (1, 3))        as next_bill_date,
           max(cancelled_at)                                          as last_cancelled_at
    from crm.subscription_account
    where {only customer_id}
    group by customer_id
) s on s.customer_id = c.customer_uuid
left join (
    select customer_id,
           count(*)::int                                              as wallet_count,
           count(*) filter (where status = 1)::int                    as active_wallet_count,
           count(*) filter (where status = 2)::int                    as frozen_wallet_count,
           sum(balance)                                               as wallet_balance,
           sum(balance) filter (where status = 1)                     as active_wallet_balance,
           max(balance)                                               as highest_wallet_balance,
           min(balance)                                               as lowest_wallet_balance,
           array_agg(distinct kind order by kind)
               filter (where kind is not null)                        as wallet_kinds,
           array_agg(distinct currency order by currency)
               filter (where currency is not null)                    as wallet_currencies,
           max(last_topup_at)                                         as last_topup_at,
           -- the first day on which money would be lost
           min(expires_at) filter (where balance > 0)                 as wallet_expires_at
    from crm.wallet_account
    where {only customer_id}
    group by customer_id
) w on w.customer_id = c.customer_uuid
left join (
    select customer_id,
           count(*)::int                                              as package_count,
           count(*) filter (where status = 1)::int                    as active_package_count,
           count(*) filter (where status = 2)::int                    as used_up_package_count,
           count(*) filter (where status = 3)::int                    as expired_package_count,
           sum(total_units)                                           as package_units,
           sum(remaining_units) filter (where status = 1)             as package_units_left,
           sum(price)                                                 as package_spend,
           round(avg(price), 2)                                       as average_package_price,
           array_agg(distinct package_id order by package_id)
               filter (where package_id is not null)                  as bought_package_ids,
           array_agg(distinct package_id order by package_id)
               filter (where package_id is not null and status = 1)   as active_bought_package_ids,
           array_agg(distinct location_code order by location_code)
               filter (where location_code is not null)               as package_location_codes,
           min(purchased_at)                                          as first_package_at,
           max(purchased_at)                                          as last_package_at,
           min(expires_at) filter (where status = 1 and remaining_units > 0) as package_expires_at
    from crm.package_account
    where {only customer_id}
    group by customer_id
) p on p.customer_id = c.customer_uuid
where {only c.customer_uuid}
$def$ $fn$;
