-- returns: trim_metrics int8
select queen.trim_metrics($1::int, $2::int)
