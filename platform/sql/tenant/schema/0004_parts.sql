-- Live tables are kept part by part: an event computes the columns that come from the table it wrote to, not the whole row.
-- A live table that an older program built has no function for that yet: its rows are computed whole until it is
-- built anew, which the changed version of the definition brings about.
alter table crm.read_model add column live_in_parts boolean not null default false;
