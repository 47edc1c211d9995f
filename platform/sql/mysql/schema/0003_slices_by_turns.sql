-- Nothing to change here: the slices of applied ids take turns instead of following the date.  The number keeps older programs that restart from
-- restoring their own procedures.
do 0;
