-- In the target of a migration, before the copy, in its transaction.
-- returns: nothing
drop schema if exists queen, queen_streams cascade
