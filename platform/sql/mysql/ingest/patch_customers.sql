-- patch_customers: changes the members of customers that each patch contains, in order, unless a newer event has written
-- them; an unknown customer is created.  called by: ingest, after write_accounts
delimiter //
create or replace procedure patch_customers(p_patches json)
begin
    declare v_n int default 0;
    declare v_patch json;

    while v_n < coalesce(json_length(p_patches), 0) do
        set v_patch = json_extract(p_patches, concat('$[', v_n, ']'));
        insert into customer (customer_uuid, updated_at, created_at)
        select p.customer_id, str_to_date(p.at, '%Y-%m-%dT%H:%i:%s.%fZ'), str_to_date(p.created_at, '%Y-%m-%dT%H:%i:%s.%fZ')
          from json_table(v_patch, '$' columns (customer_id char(36) character set ascii path '$.customer_id', at varchar(30) path '$.at',
               created_at varchar(30) path '$.created_at')) p
            on duplicate key update id = customer.id;
        update customer c
          join json_table(v_patch, '$' columns (customer_id char(36) character set ascii path '$.customer_id', first_name text character set utf8mb4 path
               '$.first_name', last_name text character set utf8mb4 path
               '$.last_name', email text character set utf8mb4 path
               '$.email', phone text character set utf8mb4 path
               '$.phone', gender text character set utf8mb4 path
               '$.gender', city text character set utf8mb4 path
               '$.city', postal_code text character set utf8mb4 path
               '$.postal_code', country text character set utf8mb4 path
               '$.country', language text character set utf8mb4 path
               '$.language', source text character set utf8mb4 path
               '$.source', home_location text character set utf8mb4 path
               '$.home_location', note text character set utf8mb4 path
               '$.note', birth_date date path '$.birth_date', tags json path '$.tags',
               email_opt_in varchar(5) path '$.email_opt_in', sms_opt_in varchar(5) path '$.sms_opt_in', is_blocked varchar(5) path '$.is_blocked',
               at varchar(30) path '$.at')) p on c.customer_uuid = p.customer_id
           set c.first_name = if(json_exists(v_patch, '$.first_name'), p.first_name, c.first_name),
               c.last_name = if(json_exists(v_patch, '$.last_name'), p.last_name, c.last_name),
               c.email = if(json_exists(v_patch, '$.email'), p.email, c.email),
               c.phone = if(json_exists(v_patch, '$.phone'), p.phone, c.phone),
               c.gender = if(json_exists(v_patch, '$.gender'), p.gender, c.gender),
               c.city = if(json_exists(v_patch, '$.city'), p.city, c.city),
               c.postal_code = if(json_exists(v_patch, '$.postal_code'), p.postal_code, c.postal_code),
               c.country = if(json_exists(v_patch, '$.country'), p.country, c.country),
               c.language = if(json_exists(v_patch, '$.language'), p.language, c.language),
               c.source = if(json_exists(v_patch, '$.source'), p.source, c.source),
               c.home_location = if(json_exists(v_patch, '$.home_location'), p.home_location, c.home_location),
               c.note = if(json_exists(v_patch, '$.note'), p.note, c.note),
               c.birth_date = if(json_exists(v_patch, '$.birth_date'), p.birth_date, c.birth_date),
               c.tags = if(json_exists(v_patch, '$.tags'), coalesce(nullif(p.tags, 'null'), '[]'), c.tags),
               c.email_opt_in = if(json_exists(v_patch, '$.email_opt_in'), coalesce(p.email_opt_in in ('true', '1'), false), c.email_opt_in),
               c.sms_opt_in = if(json_exists(v_patch, '$.sms_opt_in'), coalesce(p.sms_opt_in in ('true', '1'), false), c.sms_opt_in),
               c.is_blocked = if(json_exists(v_patch, '$.is_blocked'), coalesce(p.is_blocked in ('true', '1'), false), c.is_blocked),
               c.updated_at = str_to_date(p.at, '%Y-%m-%dT%H:%i:%s.%fZ')
         where c.updated_at <= str_to_date(p.at, '%Y-%m-%dT%H:%i:%s.%fZ');
        set v_n = v_n + 1;
    end while;
end
//
