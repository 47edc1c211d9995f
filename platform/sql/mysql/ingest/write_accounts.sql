-- write_accounts: writes the current state of customers, subscriptions, wallets and packages, unless a newer event has
-- written them, and adds adjustments to wallets.  called by: ingest
--
-- MySQL assigns the columns in the order of the text, so updated_at, which is compared, comes last.
delimiter //
create or replace procedure write_accounts(p_customers json, p_subscriptions json, p_wallets json, p_adjustments json, p_packages json)
begin
    if p_customers is not null then
        insert into customer (customer_uuid, first_name, last_name, email, phone, gender, city, postal_code, country, language, source,
               home_location, note, birth_date, tags, email_opt_in, sms_opt_in, is_blocked, updated_at, created_at)
        select r.customer_id, r.first_name, r.last_name, r.email, r.phone, r.gender, r.city, r.postal_code, r.country, r.language,
               r.source, r.home_location, r.note, r.birth_date, coalesce(r.tags, '[]'), coalesce(r.email_opt_in in ('true', '1'), false),
               coalesce(r.sms_opt_in in ('true', '1'), false), coalesce(r.is_blocked in ('true', '1'), false), str_to_date(r.at,
               '%Y-%m-%dT%H:%i:%s.%fZ'), str_to_date(r.created_at, '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(p_customers, '$[*]' columns (customer_id char(36) character set ascii path '$.customer_id', first_name text
               character set utf8mb4 path '$.first_name', last_name text character set utf8mb4 path '$.last_name', email text character
               set utf8mb4 path '$.email', phone text character set utf8mb4 path '$.phone', gender text character set utf8mb4 path
               '$.gender', city text character set utf8mb4 path '$.city', postal_code text character set utf8mb4 path '$.postal_code',
               country text character set utf8mb4 path '$.country', language text character set utf8mb4 path '$.language', source text
               character set utf8mb4 path '$.source', home_location text character set utf8mb4 path '$.home_location', note text character
               set utf8mb4 path '$.note', birth_date date path '$.birth_date', tags json path '$.tags', email_opt_in varchar(5) path
               '$.email_opt_in', sms_opt_in varchar(5) path '$.sms_opt_in', is_blocked varchar(5) path '$.is_blocked', at varchar(30) path
               '$.at', created_at varchar(30) path '$.created_at')) r
            on duplicate key update
               first_name = if(values(updated_at) >= customer.updated_at, values(first_name), customer.first_name),
               last_name = if(values(updated_at) >= customer.updated_at, values(last_name), customer.last_name),
               email = if(values(updated_at) >= customer.updated_at, values(email), customer.email),
               phone = if(values(updated_at) >= customer.updated_at, values(phone), customer.phone),
               gender = if(values(updated_at) >= customer.updated_at, values(gender), customer.gender),
               city = if(values(updated_at) >= customer.updated_at, values(city), customer.city),
               postal_code = if(values(updated_at) >= customer.updated_at, values(postal_code), customer.postal_code),
               country = if(values(updated_at) >= customer.updated_at, values(country), customer.country),
               language = if(values(updated_at) >= customer.updated_at, values(language), customer.language),
               source = if(values(updated_at) >= customer.updated_at, values(source), customer.source),
               home_location = if(values(updated_at) >= customer.updated_at, values(home_location), customer.home_location),
               note = if(values(updated_at) >= customer.updated_at, values(note), customer.note),
               birth_date = if(values(updated_at) >= customer.updated_at, values(birth_date), customer.birth_date),
               tags = if(values(updated_at) >= customer.updated_at, values(tags), customer.tags),
               email_opt_in = if(values(updated_at) >= customer.updated_at, values(email_opt_in), customer.email_opt_in),
               sms_opt_in = if(values(updated_at) >= customer.updated_at, values(sms_opt_in), customer.sms_opt_in),
               is_blocked = if(values(updated_at) >= customer.updated_at, values(is_blocked), customer.is_blocked),
               updated_at = if(values(updated_at) >= customer.updated_at, values(updated_at), customer.updated_at);
    end if;
    if p_subscriptions is not null then
        insert into subscription_account (id, customer_id, package_id, location_code, status, price, currency, billing_period, started_at,
               next_bill_date, cancelled_at, updated_at)
        select r.id, r.customer_id, r.package_id, r.location_code, r.status, r.price, r.currency, r.billing_period,
               str_to_date(r.started_at, '%Y-%m-%dT%H:%i:%s.%fZ'), r.next_bill_date, str_to_date(r.cancelled_at, '%Y-%m-%dT%H:%i:%s.%fZ'),
               str_to_date(r.at, '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(p_subscriptions, '$[*]' columns (id char(36) character set ascii path '$.id', customer_id char(36) character set
               ascii path '$.customer_id', package_id int path '$.package_id', location_code text character set utf8mb4 path
               '$.location_code', status smallint path '$.status', price decimal(12,2) path '$.price', currency text character set utf8mb4
               path '$.currency', billing_period text character set utf8mb4 path '$.billing_period', started_at varchar(30) path
               '$.started_at', next_bill_date date path '$.next_bill_date', cancelled_at varchar(30) path '$.cancelled_at', at varchar(30)
               path '$.at')) r
            on duplicate key update
               customer_id = if(values(updated_at) >= subscription_account.updated_at, values(customer_id), subscription_account.customer_id),
               package_id = if(values(updated_at) >= subscription_account.updated_at, values(package_id), subscription_account.package_id),
               location_code = if(values(updated_at) >= subscription_account.updated_at, values(location_code), subscription_account.location_code),
               price = if(values(updated_at) >= subscription_account.updated_at, values(price), subscription_account.price),
               currency = if(values(updated_at) >= subscription_account.updated_at, values(currency), subscription_account.currency),
               billing_period = if(values(updated_at) >= subscription_account.updated_at, values(billing_period), subscription_account.billing_period),
               started_at = if(values(updated_at) >= subscription_account.updated_at, values(started_at), subscription_account.started_at),
               next_bill_date = if(values(updated_at) >= subscription_account.updated_at, values(next_bill_date), subscription_account.next_bill_date),
               cancelled_at = if(values(updated_at) >= subscription_account.updated_at, values(cancelled_at), subscription_account.cancelled_at),
               status = if(values(updated_at) >= subscription_account.updated_at, values(status), subscription_account.status),
               updated_at = if(values(updated_at) >= subscription_account.updated_at, values(updated_at), subscription_account.updated_at);
    end if;
    if p_wallets is not null then
        insert into wallet_account (id, customer_id, kind, balance, currency, last_topup_at, expires_at, status, updated_at)
        select r.id, r.customer_id, r.kind, r.balance, r.currency, str_to_date(r.last_topup_at, '%Y-%m-%dT%H:%i:%s.%fZ'),
               str_to_date(r.expires_at, '%Y-%m-%dT%H:%i:%s.%fZ'), r.status, str_to_date(r.at, '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(p_wallets, '$[*]' columns (id char(36) character set ascii path '$.id', customer_id char(36) character set ascii
               path '$.customer_id', kind text character set utf8mb4 path '$.kind', balance decimal(14,2) path '$.balance', currency text
               character set utf8mb4 path '$.currency', last_topup_at varchar(30) path '$.last_topup_at', expires_at varchar(30) path
               '$.expires_at', status smallint path '$.status', at varchar(30) path '$.at')) r
            on duplicate key update
               customer_id = if(values(updated_at) >= wallet_account.updated_at or wallet_account.status is null, values(customer_id), wallet_account.customer_id),
               kind = if(values(updated_at) >= wallet_account.updated_at or wallet_account.status is null, values(kind), wallet_account.kind),
               balance = if(values(updated_at) >= wallet_account.updated_at or wallet_account.status is null, values(balance), wallet_account.balance),
               currency = if(values(updated_at) >= wallet_account.updated_at or wallet_account.status is null, values(currency), wallet_account.currency),
               last_topup_at = if(values(updated_at) >= wallet_account.updated_at or wallet_account.status is null, values(last_topup_at), wallet_account.last_topup_at),
               expires_at = if(values(updated_at) >= wallet_account.updated_at or wallet_account.status is null, values(expires_at), wallet_account.expires_at),
               updated_at = if(values(updated_at) >= wallet_account.updated_at or wallet_account.status is null, values(updated_at), wallet_account.updated_at),
               status = if(values(updated_at) >= wallet_account.updated_at, values(status), wallet_account.status);
    end if;
    if p_adjustments is not null then
        insert into wallet_account (id, customer_id, balance, last_topup_at, updated_at)
        select r.id, r.customer_id, r.delta, str_to_date(r.last_topup_at, '%Y-%m-%dT%H:%i:%s.%fZ'), str_to_date(r.at, '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(p_adjustments, '$[*]' columns (id char(36) character set ascii path '$.id', customer_id char(36) character set ascii path
               '$.customer_id', delta decimal(14,2) path '$.delta', last_topup_at varchar(30) path '$.last_topup_at', at varchar(30) path '$.at')) r
            on duplicate key update
               customer_id = if(wallet_account.status is null, values(customer_id), wallet_account.customer_id),
               balance = wallet_account.balance + values(balance),
               last_topup_at = coalesce(greatest(wallet_account.last_topup_at, values(last_topup_at)), values(last_topup_at), wallet_account.last_topup_at),
               updated_at = if(wallet_account.status is null, greatest(wallet_account.updated_at, values(updated_at)), wallet_account.updated_at);
    end if;
    if p_packages is not null then
        insert into package_account (id, customer_id, package_id, location_code, status, total_units, remaining_units, price,
               purchased_at, expires_at, updated_at)
        select r.id, r.customer_id, r.package_id, r.location_code, r.status, r.total_units, r.remaining_units, r.price,
               str_to_date(r.purchased_at, '%Y-%m-%dT%H:%i:%s.%fZ'), str_to_date(r.expires_at, '%Y-%m-%dT%H:%i:%s.%fZ'), str_to_date(r.at,
               '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(p_packages, '$[*]' columns (id char(36) character set ascii path '$.id', customer_id char(36) character set
               ascii path '$.customer_id', package_id int path '$.package_id', location_code text character set utf8mb4 path
               '$.location_code', status smallint path '$.status', total_units int path '$.total_units', remaining_units int path
               '$.remaining_units', price decimal(12,2) path '$.price', purchased_at varchar(30) path '$.purchased_at', expires_at
               varchar(30) path '$.expires_at', at varchar(30) path '$.at')) r
            on duplicate key update
               customer_id = if(values(updated_at) >= package_account.updated_at, values(customer_id), package_account.customer_id),
               package_id = if(values(updated_at) >= package_account.updated_at, values(package_id), package_account.package_id),
               location_code = if(values(updated_at) >= package_account.updated_at, values(location_code), package_account.location_code),
               total_units = if(values(updated_at) >= package_account.updated_at, values(total_units), package_account.total_units),
               remaining_units = if(values(updated_at) >= package_account.updated_at, values(remaining_units), package_account.remaining_units),
               price = if(values(updated_at) >= package_account.updated_at, values(price), package_account.price),
               purchased_at = if(values(updated_at) >= package_account.updated_at, values(purchased_at), package_account.purchased_at),
               expires_at = if(values(updated_at) >= package_account.updated_at, values(expires_at), package_account.expires_at),
               status = if(values(updated_at) >= package_account.updated_at, values(status), package_account.status),
               updated_at = if(values(updated_at) >= package_account.updated_at, values(updated_at), package_account.updated_at);
    end if;
end
//
