-- returns: set_maintenance int4
select queen.set_maintenance($1::text, $2::boolean)
