// Stream queries: what is registered, how large its state is and how far its consumer group is behind.
import { query, useKept, usePoll } from "../api";
import { count, duration } from "../format";
import { Badge, Card, Empty, Pager, Problem, SearchBox, Skeleton, Time } from "../parts/basic";
import { link, setParams, usePlace } from "../router";

interface Stream { id: string; name: string; sourceQueue: string; sinkQueue: string | null; configHash: string; createdAt: string; updatedAt: string; keys: number; consumerGroup: string | null; lag: number | null; lagSeconds: number | null }

const PAGE = 50;
const MOST_KEYS = 10000; // the server counts no further

export function StreamsPage() {
    const { params } = usePlace();
    const search = params.get("search") ?? "", offset = Number(params.get("offset") ?? 0) || 0;
    const list = usePoll<{ queries: Stream[]; total: number }>("streams/v1/queries" + query({ search, offset, limit: PAGE }), 2000);
    const page = useKept(list.data), rows = page?.queries ?? [];
    return (
        <>
            <div class="page-head"><h1>Streams</h1></div>
            <div class="filters"><SearchBox label="Name contains" value={search} onChange={(v) => setParams({ search: v, offset: undefined })} /></div>
            <Card>
                <Problem text={list.error} />
                {!page ? (list.error ? null : <Skeleton rows={4} />) : rows.length === 0 ? <Empty>{search ? "No query matches." : "No stream query. The stream libraries of the clients register them."}</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Query</th><th>Source</th><th>Sink</th><th class="num">Behind</th><th class="num">Oldest</th><th class="num">Keys of state</th><th>Registered</th><th>Changed</th></tr></thead>
                            <tbody>{rows.map((s) => (
                                <tr key={s.id}>
                                    <td title={"hash of its operators: " + s.configHash}><bdi>{s.name}</bdi></td>
                                    <td><a href={link(["queues", s.sourceQueue])}><bdi>{s.sourceQueue}</bdi></a></td>
                                    <td>{s.sinkQueue ? <a href={link(["queues", s.sinkQueue])}><bdi>{s.sinkQueue}</bdi></a> : <span class="dim">none</span>}</td>
                                    <td class="num">{s.consumerGroup ? <a href={link(["groups", s.consumerGroup, s.sourceQueue])}>{count(s.lag)}</a> : <Badge tone="idle">not started</Badge>}</td>
                                    <td class="num">{s.lagSeconds ? duration(s.lagSeconds) : "–"}</td>
                                    <td class="num">{s.keys >= MOST_KEYS ? "over " : ""}{count(s.keys)}</td>
                                    <td><Time at={s.createdAt} /></td><td><Time at={s.updatedAt} /></td>
                                </tr>
                            ))}</tbody>
                        </table>
                    </div>
                )}
                <Pager offset={offset} limit={PAGE} shown={rows.length} total={page?.total} onMove={(o) => setParams({ offset: o || undefined })} />
            </Card>
        </>
    );
}
