-- returns: lane int8?
select lane from queen.locked_lanes($1::bigint[]) lane
