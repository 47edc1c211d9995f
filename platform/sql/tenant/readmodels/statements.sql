-- statement: check_live
-- returns one row: checked int8, differing int8
select checked, differing from crm.check_live($1::text, $2::int4);

-- statement: drop_live
-- returns one row: done bool?
select crm.drop_live($1::text);

-- statement: fill_live
-- returns one row: state text?
select crm.fill_live($1::text, $2::int4);

-- statement: read_models_json
-- returns one row: body text
select crm.read_models_json();

-- statement: refresh_failed
-- returns one row: done text?
select crm.refresh_failed($1::text, $2::text)::text;

-- statement: refresh_view
-- returns one row: action text, rows int8?, ms int4?
select action, rows, ms from crm.refresh_view($1::text, $2::text, $3::int4, $4::bool);

-- statement: swap_view
-- returns one row: done bool?
select crm.swap_view($1::text);

-- statement: visit_model
-- returns one row: live_ready bool?, live_there bool?, view_ready bool?, refreshed_ms_ago int8?, unknown_columns text?
select live_ready, live_there, view_ready, refreshed_ms_ago, unknown_columns from crm.visit_model($1::text, $2::text);
