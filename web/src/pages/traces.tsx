// Traces: events that clients attached to messages, by name.
import { query, seg, useKept, usePoll, type Json } from "../api";
import { count } from "../format";
import { Badge, Card, Empty, Pager, Problem, Skeleton, Time } from "../parts/basic";
import { Tree } from "../parts/tree";
import { link, setParams, usePlace } from "../router";

interface Name { trace_name: string; trace_count: number; message_count: number; last_seen: string | null }
interface Trace { id: string; transactionId: string; queue_name: string; partition: string; data: Json; eventType: string; createdAt: string }

const PAGE = 50;
const SHORT = 200; // characters that are shown as one line

export function TracesPage({ name }: { name: string | undefined }) {
    return name === undefined ? <Names /> : <ByName name={name} />;
}

function useOffset(): number {
    return Number(usePlace().params.get("offset") ?? 0) || 0;
}

function Names() {
    const offset = useOffset();
    const list = usePoll<{ trace_names: Name[]; total: number }>("api/v1/traces/names" + query({ limit: PAGE, offset }), 5000);
    const page = useKept(list.data), rows = page?.trace_names ?? [];
    return (
        <>
            <div class="page-head"><h1>Traces</h1></div>
            <Card>
                <Problem text={list.error} />
                {!page ? (list.error ? null : <Skeleton rows={4} />) : rows.length === 0 ? <Empty>No traces. Clients attach them to messages with POST /api/v1/traces.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>Name</th><th class="num">Traces</th><th class="num">Messages</th><th>Last</th></tr></thead>
                        <tbody>{rows.map((t) => (
                            <tr key={t.trace_name}><td><a href={link(["traces", t.trace_name])}><bdi>{t.trace_name}</bdi></a></td><td class="num">{count(t.trace_count)}</td><td class="num">{count(t.message_count)}</td><td><Time at={t.last_seen} exact /></td></tr>
                        ))}</tbody>
                    </table></div>
                )}
                <Pager offset={offset} limit={PAGE} shown={rows.length} total={page?.total} onMove={(o) => setParams({ offset: o || undefined })} />
            </Card>
        </>
    );
}

function ByName({ name }: { name: string }) {
    const offset = useOffset();
    const list = usePoll<{ traces: Trace[]; total: number }>(`api/v1/traces/by-name/${seg(name)}` + query({ limit: PAGE, offset }), 5000);
    const page = useKept(list.data), rows = page?.traces ?? [];
    return (
        <>
            <div class="page-head"><h1><a class="crumb" href={link(["traces"])}>Traces</a> / <bdi>{name}</bdi></h1></div>
            <Card>
                <Problem text={list.error} />
                {!page ? (list.error ? null : <Skeleton rows={4} />) : rows.length === 0 ? <Empty>No trace has this name.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>When</th><th>Message</th><th>Queue</th><th>Type</th><th>Data</th></tr></thead>
                        <tbody>{rows.map((t) => (
                            <tr key={t.id}>
                                <td class="nowrap"><Time at={t.createdAt} exact /></td>
                                <td class="mono"><a href={link(["search"], { q: t.transactionId, queue: t.queue_name, partition: t.partition })}><bdi>{t.transactionId}</bdi></a></td>
                                <td><bdi>{t.queue_name}</bdi> / <bdi>{t.partition}</bdi></td>
                                <td><Badge tone={t.eventType === "error" ? "bad" : t.eventType === "warning" ? "warn" : "idle"}><bdi>{t.eventType}</bdi></Badge></td>
                                <td class="wide">{JSON.stringify(t.data).length <= SHORT ? <code class="mono"><bdi>{JSON.stringify(t.data)}</bdi></code> : <Tree value={t.data} />}</td>
                            </tr>
                        ))}</tbody>
                    </table></div>
                )}
                <Pager offset={offset} limit={PAGE} shown={rows.length} total={page?.total} onMove={(o) => setParams({ offset: o || undefined })} />
            </Card>
        </>
    );
}
