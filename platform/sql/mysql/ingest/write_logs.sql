-- write_logs: appends transactions, visits and purchases.  called by: ingest
delimiter //
create or replace procedure write_logs(p_transactions json, p_visits json, p_purchases json)
begin
    if p_transactions is not null then
        insert into transaction_log (id, customer_id, location_code, kind, payment_method, amount, discount, tip, created_at)
        select r.id, r.customer_id, r.location_code, r.kind, r.payment_method, r.amount, r.discount, r.tip, str_to_date(r.at,
               '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(p_transactions, '$[*]' columns (id char(36) character set ascii path '$.id', customer_id char(36) character set
               ascii path '$.customer_id', location_code text character set utf8mb4 path '$.location_code', kind varchar(10) path
               '$.kind', payment_method text character set utf8mb4 path '$.payment_method', amount decimal(12,2) path '$.amount', discount
               decimal(12,2) path '$.discount', tip decimal(12,2) path '$.tip', at varchar(30) path '$.at')) r;
    end if;
    if p_visits is not null then
        insert into visit_log (id, customer_id, location_code, service, duration_minutes, rating, visited_at)
        select r.id, r.customer_id, r.location_code, r.service, r.duration_minutes, r.rating, str_to_date(r.at, '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(p_visits, '$[*]' columns (id char(36) character set ascii path '$.id', customer_id char(36) character set ascii
               path '$.customer_id', location_code text character set utf8mb4 path '$.location_code', service text character set utf8mb4
               path '$.service', duration_minutes int path '$.duration_minutes', rating smallint path '$.rating', at varchar(30) path
               '$.at')) r;
    end if;
    if p_purchases is not null then
        insert into purchase_log (id, customer_id, product_id, category, location_code, quantity, amount, purchased_at)
        select r.id, r.customer_id, r.product_id, r.category, r.location_code, r.quantity, r.amount, str_to_date(r.at,
               '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(p_purchases, '$[*]' columns (id char(36) character set ascii path '$.id', customer_id char(36) character set
               ascii path '$.customer_id', product_id int path '$.product_id', category text character set utf8mb4 path '$.category',
               location_code text character set utf8mb4 path '$.location_code', quantity int path '$.quantity', amount decimal(12,2) path
               '$.amount', at varchar(30) path '$.at')) r;
    end if;
end
//
