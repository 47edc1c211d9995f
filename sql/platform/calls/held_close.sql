-- A lane was seen to be empty.
delete from platform.held_lane
 where queue = $1::text and partition = $2::text and tenant = $3::text
