-- A tenant of size, for bench/segments.py:   psql -v customers=1000000 -v transactions=10000000 -f segments_tenant.sql
-- Writes straight into the write model of an empty tenant (platform/sql/tenant/schema); the read models are built afterwards.
-- The same numbers give the same data, but for the times, which are counted back from now.
\set ON_ERROR_STOP on
select setseed(0.7);

-- Who: the same uuid for the same number, so that logs need no look-up.
create function pg_temp.customer_of(n bigint) returns uuid language sql immutable parallel safe
    as $$ select md5('customer ' || n)::uuid $$;
-- Few customers do much: the square of an even chance.
create function pg_temp.somebody(of_all bigint) returns bigint language sql volatile
    as $$ select 1 + floor(of_all * power(random(), 2))::bigint $$;
create function pg_temp.one_of(variadic texts text[]) returns text language sql volatile
    as $$ select texts[1 + floor(random() * cardinality(texts))::int] $$;

insert into crm.customer (customer_uuid, first_name, last_name, email, phone, gender, city, postal_code, country, language, source,
                          home_location, note, birth_date, tags, email_opt_in, sms_opt_in, is_blocked, created_at, updated_at)
select pg_temp.customer_of(n), 'First' || n % 5000, 'Last' || n % 70000, 'c' || n || '@example.org', '+49 30 ' || n,
       pg_temp.one_of('female', 'male', 'other', null), pg_temp.one_of('Berlin', 'Bonn', 'Bremen', 'Hamburg', 'Kiel', 'Ulm', 'Trier'),
       lpad((n % 90000 + 10000)::text, 5, '0'), pg_temp.one_of('DE', 'DE', 'DE', 'AT', 'CH'), pg_temp.one_of('de', 'de', 'en', 'fr'),
       pg_temp.one_of('web', 'app', 'walk-in', 'referral'), 'LOC_' || (n % 40), case when n % 50 = 0 then 'has an allergy' end,
       date '1950-01-01' + (n * 7919 % 20000)::int,
       case when n % 20 = 0 then '{vip}'::text[] when n % 7 = 0 then '{new,trial}' else '{}' end,
       random() < 0.6, random() < 0.3, random() < 0.01, now() - random() * interval '1500 days', now()
from generate_series(1, :customers::bigint) n;

insert into crm.subscription_account (id, customer_id, package_id, location_code, status, price, currency, billing_period, started_at,
                                      next_bill_date, cancelled_at, updated_at)
select gen_random_uuid(), pg_temp.customer_of(1 + n * 4 % :customers), n % 30, 'LOC_' || n % 40,
       (array[1, 1, 1, 1, 2, 3, 4, 4])[1 + floor(random() * 8)::int], 10 + n % 90, 'EUR', pg_temp.one_of('month', 'year'),
       now() - random() * interval '900 days', (now() + random() * interval '40 days')::date, null, now()
from generate_series(1, :customers::bigint / 5) n;

insert into crm.wallet_account (id, customer_id, kind, balance, currency, last_topup_at, expires_at, status, updated_at)
select gen_random_uuid(), pg_temp.customer_of(1 + n * 2 % :customers), pg_temp.one_of('credit', 'gift'),
       round((power(random(), 3) * 200)::numeric, 2), 'EUR', now() - random() * interval '300 days', now() + random() * interval '600 days',
       case when random() < 0.95 then 1 else 2 end, now()
from generate_series(1, :customers::bigint * 2 / 5) n;

insert into crm.package_account (id, customer_id, package_id, location_code, status, total_units, remaining_units, price, purchased_at,
                                 expires_at, updated_at)
select gen_random_uuid(), pg_temp.customer_of(1 + n * 3 % :customers), n % 50, 'LOC_' || n % 40, 1 + n % 3, 10, n % 11, 50 + n % 100,
       now() - random() * interval '700 days', now() + random() * interval '200 days', now()
from generate_series(1, :customers::bigint * 3 / 10) n;

insert into crm.transaction_log (id, customer_id, location_code, kind, payment_method, amount, discount, tip, created_at)
select gen_random_uuid(), pg_temp.customer_of(pg_temp.somebody(:customers)), 'LOC_' || n % 40, case when n % 25 = 0 then 'refund' else 'sale' end,
       pg_temp.one_of('card', 'card', 'cash', 'wallet'), round((5 + random() * 95)::numeric, 2), case when n % 9 = 0 then 5 end,
       case when n % 5 = 0 then 2 end, now() - random() * interval '730 days'
from generate_series(1, :transactions::bigint) n;

insert into crm.visit_log (id, customer_id, location_code, service, duration_minutes, rating, visited_at)
select gen_random_uuid(), pg_temp.customer_of(pg_temp.somebody(:customers)), 'LOC_' || n % 40, pg_temp.one_of('cut', 'colour', 'massage', 'spa'),
       20 + (n % 100)::int, case when n % 3 = 0 then 1 + n % 5 end, now() - random() * interval '730 days'
from generate_series(1, :transactions::bigint / 5) n;

insert into crm.purchase_log (id, customer_id, product_id, category, location_code, quantity, amount, purchased_at)
select gen_random_uuid(), pg_temp.customer_of(pg_temp.somebody(:customers)), n % 500, 'category ' || n % 20, 'LOC_' || n % 40, 1 + n % 4,
       5 + n % 60, now() - random() * interval '730 days'
from generate_series(1, :transactions::bigint / 10) n;

vacuum (analyze) crm.customer;
vacuum (analyze) crm.subscription_account;
vacuum (analyze) crm.wallet_account;
vacuum (analyze) crm.package_account;
vacuum (analyze) crm.transaction_log;
vacuum (analyze) crm.visit_log;
vacuum (analyze) crm.purchase_log;
