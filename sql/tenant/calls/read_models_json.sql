select crm.read_models_json()
