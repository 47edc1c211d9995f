-- returns: rotate text?
select queen.rotate($1::int, $2::bigint) where queen.try_chores()
