-- delete_customers: deletes customers with all of their rows.  called by: ingest
delimiter //
create or replace procedure delete_customers(p_customers json)
begin
    if json_length(p_customers) > 0 then
        delete t from subscription_account t join json_table(p_customers, '$[*]' columns (id char(36) character set ascii path '$')) d on t.customer_id = d.id;
        delete t from wallet_account t join json_table(p_customers, '$[*]' columns (id char(36) character set ascii path '$')) d on t.customer_id = d.id;
        delete t from package_account t join json_table(p_customers, '$[*]' columns (id char(36) character set ascii path '$')) d on t.customer_id = d.id;
        delete t from transaction_log t join json_table(p_customers, '$[*]' columns (id char(36) character set ascii path '$')) d on t.customer_id = d.id;
        delete t from visit_log t join json_table(p_customers, '$[*]' columns (id char(36) character set ascii path '$')) d on t.customer_id = d.id;
        delete t from purchase_log t join json_table(p_customers, '$[*]' columns (id char(36) character set ascii path '$')) d on t.customer_id = d.id;
        delete t from customer t join json_table(p_customers, '$[*]' columns (id char(36) character set ascii path '$')) d on t.customer_uuid = d.id;
    end if;
end
//
