-- Nothing to change here: the slices of applied ids take turns instead of following the date (crm.turn_applied_day).  The number keeps older
-- programs that restart from restoring their own functions.
select 1;
