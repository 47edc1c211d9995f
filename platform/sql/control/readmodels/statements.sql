-- statement: claim_visit
select taken, abandoned_by from platform.claim_visit($1::text, $2::text, $3::text, $4::int4, $5::int4);

-- statement: end_visit
select platform.end_visit($1::text, $2::text, $3::text, $4::text, $5::int4, $6::bool);

-- statement: enrol_read_models
select platform.enrol_read_models($1::bool);

-- statement: list_read_models
select platform.list_read_models($1::text);

-- statement: note_changes
select platform.note_changes($1::text[]);

-- statement: read_model_agenda
select tenant, model, mode, wanted_us, first_change_us, last_change_us, visited_us, refreshed_us, retry_us, claimed_until_us, failures,
       now_us, minute
from platform.read_model_agenda($1::text);

-- statement: renew_visits
select platform.renew_visits($1::text, $2::int4);

-- statement: want_visit
select platform.want_visit($1::text, $2::text, $3::text), clock_timestamp();
