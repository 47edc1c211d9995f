select platform.enrol_read_models($1::bool)
