-- returns: maintenance_flags int4
select queen.maintenance_flags()
