-- queen.cron_field: expand one field of a cron expression to the numbers that it allows.
--
-- called by  queen.cron_read
-- in         p_text: numbers, names (p_names, the first for p_low), ranges a-b, steps */n and a-b/n and a/n, lists of these, *
-- out        the numbers in order
-- raises     QN001, naming the field (p_what)
create or replace function queen.cron_field(p_text text, p_low int, p_high int, p_names text[], p_what text)
returns int[]
language plpgsql immutable
as $$
declare
    v_part text;
    m      text[];
    v_from int;
    v_to   int;
    v_step int;
    v_all  int[] := '{}';
begin
    foreach v_part in array string_to_array(lower(p_text), ',') loop
        for i in 1 .. coalesce(cardinality(p_names), 0) loop
            v_part := regexp_replace(v_part, '\m' || p_names[i] || '\M', (p_low + i - 1)::text, 'g');
        end loop;
        m := regexp_match(v_part, '^(?:(\*)|(\d{1,4})(?:-(\d{1,4}))?)(?:/(\d{1,4}))?$');
        if m is null then
            raise exception 'cron: "%" is not a valid %', v_part, p_what using errcode = 'QN001';
        end if;
        v_from := case when m[1] is not null then p_low else m[2]::int end;
        v_to := case when m[1] is not null then p_high
                     when m[3] is not null then m[3]::int
                     when m[4] is not null then p_high else v_from end;
        v_step := coalesce(m[4]::int, 1);
        if v_from < p_low or v_to > p_high or v_from > v_to or v_step < 1 then
            raise exception 'cron: "%" is not a valid % (% to %)', v_part, p_what, p_low, p_high using errcode = 'QN001';
        end if;
        v_all := v_all || array(select generate_series(v_from, v_to, v_step));
    end loop;
    return array(select distinct n from unnest(v_all) n order by n);
end
$$;
