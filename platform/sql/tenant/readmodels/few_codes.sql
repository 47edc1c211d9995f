-- crm.few_codes(codes): the codes, or null if they are too many or too long for an index entry.
--
-- An index entry has at most 2,704 bytes.  A reader of such a column must treat null as "any": the condition only finds
-- candidates quickly, and another condition must decide.
-- called by: crm.customer_transactions_definition, crm.stale_copies
-- in: distinct codes, may be null          out: at most 16 codes of at most 1 KiB in total, or null; '{}' for null
-- locks: none          raises: nothing
create or replace function crm.few_codes(p_codes text[]) returns text[]
language sql stable parallel safe
as $$
    select case when p_codes is null then '{}'
                when cardinality(p_codes) <= 16 and octet_length(p_codes::text) <= 1024 then p_codes end
$$;
