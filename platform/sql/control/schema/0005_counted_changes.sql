-- What came during a visit is found by counting, not by comparing times: a clock that is set back would hide it.
alter table platform.read_model
    add column changes         bigint not null default 0, -- noted (platform.note_changes)
    add column wishes          bigint not null default 0, -- noted (platform.want_visit, platform.enrol_read_models)
    add column claimed_changes bigint not null default 0, -- the two as they were when the visit began
    add column claimed_wishes  bigint not null default 0;
