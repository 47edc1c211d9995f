-- The HTTP status and the body of an answer.
-- columns answer: status int4, body text?

-- statement: campaign_recipient
-- returns one row: @answer
select status, body from crm.campaign_recipient($1::json);

-- statement: campaign_recipients
-- returns: n int8, customer text, first_name text?, last_name text?, email text?, phone text?, language text?, city text?, country text?,
-- returns: skipped text?
-- The next recipients of a run, with the values for templates, and why a customer must not get a message now.
-- $1: run; $2: after this number; $3: limit
select r.n, r.customer_uuid::text, c.first_name, c.last_name, c.email, c.phone, c.language, c.city, c.country,
       case when c.customer_uuid is null then 'deleted'
            when c.is_blocked then 'blocked'
            when (k.channel = 'email' and not c.email_opt_in) or (k.channel = 'sms' and not c.sms_opt_in) then 'no_consent'
            when (k.channel = 'email' and btrim(coalesce(c.email, '')) = '') or (k.channel = 'sms' and btrim(coalesce(c.phone, '')) = '')
            then 'no_address' end
from crm.campaign_run u
join crm.campaign k on k.id = u.campaign_id
join crm.campaign_recipient r on r.run_id = u.id
left join crm.customer c on c.customer_uuid = r.customer_uuid
where u.id = $1 and r.n > $2 order by r.n limit $3;

-- statement: campaign_runs
-- returns: key text?, body text?
select key, body from crm.campaign_runs($1::json);

-- statement: campaign_sent
-- returns: finished bool?
-- Records a page of recipients, unless another delivery of the trigger has recorded it: the broker has the messages, or the
-- recipient was skipped.  $1: run; $2, $3: the recipients after $2 up to $3; $4, $5: numbers of skipped ones, and the reasons.  Returns
-- whether that is all; no row: the page was recorded, or the run was deleted.
with page as (
    select u.id from crm.campaign_run u where u.id = $1 and u.sent = $2 for no key update
), skipped as (
    update crm.campaign_recipient r set skipped = s.reason
    from page, unnest($4::int8[], $5::text[]) s(n, reason)
    where r.run_id = page.id and r.n = s.n
    returning s.reason
)
update crm.campaign_run u
set sent = $3, finished_at = case when $3 >= u.recipients then coalesce(u.finished_at, now()) end,
    blocked = u.blocked + (select count(*) from skipped where reason = 'blocked'),
    no_consent = u.no_consent + (select count(*) from skipped where reason = 'no_consent'),
    no_address = u.no_address + (select count(*) from skipped where reason = 'no_address'),
    deleted = u.deleted + (select count(*) from skipped where reason = 'deleted')
from page
where u.id = page.id
returning u.sent >= u.recipients;

-- statement: campaign_to_run
-- A campaign with its segment's filter, and the run of this trigger if it has started.  $1: campaign; $2: key of the
-- trigger
-- returns: name text, queue text, template text, retry_policy text, filter text, kind text, run uuid?, recipients int8, sent int8,
-- returns: finished bool
select c.name, c.queue, c.template::text, coalesce(c.retry_policy::text, ''), s.filter::text, c.kind,
       r.id, coalesce(r.recipients, 0), coalesce(r.sent, 0), r.finished_at is not null
from crm.campaign c
join crm.segment s on s.id = c.segment_id
left join crm.campaign_run r on r.key = $2
where c.id = $1;

-- statement: create_campaign
-- returns one row: @answer
select status, body from crm.create_campaign($1::json);

-- statement: delete_campaign
-- returns one row: @answer
select status, body from crm.delete_campaign($1::json);

-- statement: delete_segment
-- returns one row: @answer
select status, body from crm.delete_segment($1::json);

-- statement: get_campaign
-- returns one row: @answer
select status, body from crm.get_campaign($1::json);

-- statement: get_segment
-- returns one row: @answer
select status, body from crm.get_segment($1::json);

-- statement: list_segments
-- returns one row: @answer
select status, body from crm.list_segments($1::json);

-- statement: note_count
-- returns: nothing
-- Adds a count of a saved segment to its history.
insert into crm.segment_history (segment_id, count, path) values ($1, $2, $3)
on conflict do nothing;

-- statement: recurring_triggers
-- returns: id text, every_s int4?, cron text?, timezone text?
-- The triggers that the broker repeats: of watched segments (every_s) and of campaigns with a cron expression.
select s.id::text, s.watch_every_s, null, null from crm.segment s where s.watch_every_s is not null
union all
select c.id::text, null, c.cron, c.timezone from crm.campaign c where c.kind = 'cron'
limit 10000;

-- statement: save_segment
-- returns one row: @answer
select status, body from crm.save_segment($1::json);

-- statement: segment_announced
-- returns: nothing
-- Records that the broker has the triggers of these runs.  $1: keys
update crm.campaign_run set announced = true where key = any ($1) and not announced;

-- statement: segment_counts
-- returns one row: @answer
select status, body from crm.segment_counts($1::json);

-- statement: segment_explain_state
-- returns one row: checkpoint text, models text
-- The progress of ingestion and read models, for the explanation of a segment: two JSON texts.
-- $1: queue of the events
select coalesce((select json_build_object('queue', i.queue, 'partition', i.partition, 'position', i.position,
                                          'at', crm.iso_ms(i.at))
                 from crm.ingest_checkpoint i where i.queue = $1 order by i.at desc limit 1), 'null')::text,
       coalesce((select json_agg(json_build_object('model', r.model, 'mode', r.mode, 'liveSince', crm.iso_ms(r.live_at),
                                                   'viewAsOf', crm.iso_ms(r.view_as_of),
                                                   'refreshedAt', crm.iso_ms(r.refreshed_at),
                                                   'lastDataChangeAt', crm.iso_ms(crm.model_changed_at(r.model)))
                                  order by r.model)
                 from crm.read_model r), '[]')::text;

-- statement: segment_models
-- returns: model text, mode text, live bool, view bool, view_as_of timestamptz?, stale_ms int8?, now timestamptz
-- The available read models and the age of the views.  One row per model, attributes first.
select r.model, r.mode, r.live_version is not null, r.view_version is not null, r.view_as_of,
       case when crm.model_mark(r.model) <= r.view_mark then 0
            else greatest(0, extract(epoch from clock_timestamp() - r.view_as_of) * 1000) end::bigint,
       clock_timestamp()
from crm.read_model r
order by r.model;

-- statement: segment_new_runs
-- returns: campaign text, key text
-- Runs of campaigns on entry that a check created and that are not announced yet, oldest first.  $1: segment
select r.campaign_id::text, r.key
from crm.campaign c join crm.campaign_run r on r.campaign_id = c.id
where c.segment_id = $1 and c.kind = 'entering' and not r.announced
order by r.created_at, r.key limit 100;

-- statement: segment_outbox
-- returns: id int8, customer text, entered bool, at text, queue text
-- The oldest entries and exits of a segment that were not sent to the broker yet, and the queue for them: it is read together with
-- them, because a new subscription deletes those for the old queue.  $1: segment; $2: limit
select o.id, o.customer_uuid::text, o.entered, crm.iso_ms(o.at), s.watch_queue
from crm.segment_outbox o join crm.segment s on s.id = o.segment_id
where o.segment_id = $1 and s.watch_queue is not null order by o.id limit $2;

-- statement: segment_to_watch
-- returns: filter text, name text, due bool
-- A watched segment.  $1: id.  No row: it was deleted or is not watched any more.
-- The last column: a check that waited behind another one does not need to run.
select s.filter::text, s.name,
       coalesce(s.evaluated_at < clock_timestamp() - make_interval(secs => s.watch_every_s * 0.5), true)
from crm.segment s
where s.id = $1 and s.watch_every_s is not null;

-- statement: segment_told
-- returns: nothing
-- Deletes entries and exits that the broker has received.  $1: ids of crm.segment_outbox
delete from crm.segment_outbox where id = any ($1);

-- statement: watch_segment
-- returns one row: @answer
select status, body from crm.watch_segment($1::json);
