-- statement: check_live
select checked, differing from crm.check_live($1::text, $2::int4);

-- statement: drop_live
select crm.drop_live($1::text);

-- statement: fill_live
select crm.fill_live($1::text, $2::int4);

-- statement: read_models_json
-- returns: body text
select crm.read_models_json();

-- statement: refresh_failed
select crm.refresh_failed($1::text, $2::text)::text;

-- statement: refresh_view
select action, rows, ms from crm.refresh_view($1::text, $2::text, $3::int4, $4::bool);

-- statement: swap_view
select crm.swap_view($1::text);

-- statement: visit_model
select live_ready, live_there, view_ready, refreshed_ms_ago, unknown_columns from crm.visit_model($1::text, $2::text);
