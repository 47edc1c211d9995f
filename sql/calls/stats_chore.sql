select queen.stats_chore($1::int, $2::int, $3::int)
