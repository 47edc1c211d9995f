-- returns: drop_slices int4
select queen.drop_slices()
