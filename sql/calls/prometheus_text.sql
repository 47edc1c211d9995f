select queen.prometheus_text()
