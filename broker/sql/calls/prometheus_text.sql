-- returns: prometheus_text text?
select queen.prometheus_text()
