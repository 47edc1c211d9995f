select live_ready, live_there, view_ready, refreshed_ms_ago, unknown_columns from crm.visit_model($1::text, $2::text)
