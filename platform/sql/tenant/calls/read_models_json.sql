-- returns: body text
select crm.read_models_json()
