-- Payloads of recurring messages for queues with encryptionEnabled are sealed, as those of messages are (docs/adr/0020).
alter table queen.schedules add column sealed boolean not null default false;
-- Their answers have pieces now.
drop function if exists queen.create_schedule(jsonb), queen.change_schedule(jsonb, text), queen.list_schedules(jsonb);
