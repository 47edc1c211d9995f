-- queen.is_near: is a name nearly a known one?
--
-- called by  queen.check_names
-- out        true if the two differ in letter case, in one character, or in two neighbouring characters that are swapped. Nothing is near
--            a known name of one or two characters: lib/base/known.h has the same rule
create or replace function queen.is_near(p_name text, p_known text)
returns boolean
language plpgsql immutable strict parallel safe
as $$
declare
    a text := lower(case when length(p_name) >= length(p_known) then p_name else p_known end);
    b text := lower(case when length(p_name) >= length(p_known) then p_known else p_name end);
    i int := 1; -- the first character that differs
begin
    if length(p_known) <= 2 or length(a) - length(b) > 1 then
        return false;
    end if;
    while i <= length(b) and substr(a, i, 1) = substr(b, i, 1) loop
        i := i + 1;
    end loop;
    if i > length(b) then
        return true;
    elsif length(a) > length(b) then
        return substr(a, i + 1) = substr(b, i);
    end if;
    return substr(a, i + 1) = substr(b, i + 1)
           or substr(a, i, 2) = reverse(substr(b, i, 2)) and substr(a, i + 2) = substr(b, i + 2);
end
$$;
