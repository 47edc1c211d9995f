-- returns: stats_chore int4?
select queen.stats_chore($1::int, $2::int, $3::int)
