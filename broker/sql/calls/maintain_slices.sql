-- returns: made int4, dropped int4
select made, dropped from queen.maintain_slices()
