-- In the target of a migration, before the copy, in its transaction.
drop schema if exists queen, queen_streams cascade
