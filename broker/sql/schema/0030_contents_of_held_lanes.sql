-- It returns the lanes of which nothing is left now, instead of whether all of them are done.
drop function if exists queen.forget_contents(bigint[], uuid[], int);
