select queen.maintenance_flags()
