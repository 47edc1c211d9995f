select tenant, model, mode, wanted_us, first_change_us, last_change_us, visited_us, refreshed_us, retry_us, claimed_until_us, failures,
       now_us, minute
from platform.read_model_agenda($1::text)
