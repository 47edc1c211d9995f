select queen.drop_slices()
