-- crm.few_codes(codes): the codes, or null when they are too many or too long for an entry of an index.
--
-- An index entry has at most 2,704 bytes.  Whoever reads a column with these must take null for "any": it is a condition
-- that finds customers quickly, never the one that decides.
-- called by: crm.customer_transactions_definition, crm.stale_copies
-- in: distinct codes, may be null          out: at most 16 codes of at most 1 KiB in all, or null; '{}' for null
-- locks: none          raises: nothing
create or replace function crm.few_codes(p_codes text[]) returns text[]
language sql stable parallel safe
as $$
    select case when p_codes is null then '{}'
                when cardinality(p_codes) <= 16 and octet_length(p_codes::text) <= 1024 then p_codes end
$$;
