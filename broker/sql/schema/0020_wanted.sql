-- Who has asked the owner of a partition for it: a partition of somebody who is alive is not taken but given.
alter table queen.owners add column wanted_by text, add column wanted_at timestamptz;
