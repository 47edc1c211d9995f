-- statement: claim_visit
-- returns one row: taken bool?, abandoned_by text?
select taken, abandoned_by from platform.claim_visit($1::text, $2::text, $3::text, $4::int4, $5::int4);

-- statement: end_visit
-- returns one row: done bool?
select platform.end_visit($1::text, $2::text, $3::text, $4::text, $5::int4, $6::bool, $7::bool);

-- statement: enrol_read_models
-- returns one row: enrolled int4?
select platform.enrol_read_models($1::bool);

-- statement: list_read_models
-- returns one row: body text, total int8
select body, total from platform.list_read_models($1::text, $2::text, $3::text, $4::int4, $5::int4);

-- statement: note_changes
-- returns one row: noted int4?
select platform.note_changes($1::text[]);

-- statement: read_model_agenda
-- returns: tenant text?, model text?, mode text?, wanted_us int8?, first_change_us int8?, last_change_us int8?, visited_us int8?,
-- returns: refreshed_us int8?, retry_us int8?, claimed_until_us int8?, failures int4?, now_us int8?, minute int4?
select tenant, model, mode, wanted_us, first_change_us, last_change_us, visited_us, refreshed_us, retry_us, claimed_until_us, failures,
       now_us, minute
from platform.read_model_agenda($1::text);

-- statement: renew_visits
-- returns one row: renewed int4?
select platform.renew_visits($1::text, $2::int4);

-- statement: want_visit
-- returns one row: wanted int4?, now timestamptz
select platform.want_visit($1::text, $2::text, $3::text), clock_timestamp();
