-- How far ingestion and read models are, for "why is this customer (not) in the segment": two JSON texts.
-- $1: queue of the events
select coalesce((select json_build_object('queue', i.queue, 'partition', i.partition, 'position', i.position,
                                          'at', crm.iso_ms(i.at))
                 from crm.ingest_checkpoint i where i.queue = $1 order by i.at desc limit 1), 'null')::text,
       coalesce((select json_agg(json_build_object('model', r.model, 'mode', r.mode, 'liveSince', crm.iso_ms(r.live_at),
                                                   'viewAsOf', crm.iso_ms(r.view_as_of),
                                                   'refreshedAt', crm.iso_ms(r.refreshed_at),
                                                   'lastDataChangeAt', crm.iso_ms(crm.model_changed_at(r.model)))
                                  order by r.model)
                 from crm.read_model r), '[]')::text
