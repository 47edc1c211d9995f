// Traces: events that clients attached to messages, by name.
import { query, seg, usePoll, type Json } from "../api";
import { count } from "../format";
import { Card, Empty, Problem, Skeleton, Time } from "../parts/basic";
import { Tree } from "../parts/tree";
import { link } from "../router";

interface Name { traceName?: string; name?: string; traceCount?: number; count?: number; messageCount?: number; lastSeen?: string }
interface Trace { id: string; transactionId: string; partitionId: string; queue?: string; queueName?: string; partition?: string; data: Json; eventType: string; createdAt: string; workerId?: string | null }

export function TracesPage({ name }: { name: string | undefined }) {
    return name === undefined ? <Names /> : <ByName name={name} />;
}

function Names() {
    const list = usePoll<{ traces: Name[] }>("api/v1/traces/names" + query({ limit: 100 }), 5000);
    const rows = list.data?.traces ?? [];
    return (
        <>
            <div class="page-head"><h1>Traces</h1></div>
            <Card>
                <Problem text={list.error} />
                {!list.data ? <Skeleton rows={4} /> : rows.length === 0 ? <Empty>No traces. Clients attach them to messages with POST /api/v1/traces.</Empty> : (
                    <table>
                        <thead><tr><th>Name</th><th class="num">Traces</th><th class="num">Messages</th><th>Last</th></tr></thead>
                        <tbody>{rows.map((t) => {
                            const name = t.traceName ?? t.name ?? "";
                            return <tr key={name}><td><a href={link(["traces", name])}><bdi>{name}</bdi></a></td><td class="num">{count(t.traceCount ?? t.count)}</td><td class="num">{count(t.messageCount)}</td><td><Time at={t.lastSeen} /></td></tr>;
                        })}</tbody>
                    </table>
                )}
            </Card>
        </>
    );
}

function ByName({ name }: { name: string }) {
    const list = usePoll<{ traces: Trace[] }>(`api/v1/traces/by-name/${seg(name)}` + query({ limit: 100 }), 5000);
    return (
        <>
            <div class="page-head"><h1><a class="crumb" href={link(["traces"])}>Traces</a> / <bdi>{name}</bdi></h1></div>
            <Problem text={list.error} />
            {!list.data ? <Skeleton rows={4} /> : list.data.traces.map((t) => (
                <Card key={t.id} title={<a class="mono" href={link(["search"], { q: t.transactionId })}><bdi>{t.transactionId}</bdi></a>} side={<Time at={t.createdAt} exact />}>
                    <p class="dim"><bdi>{t.queue ?? t.queueName ?? ""}</bdi> · <bdi>{t.eventType}</bdi></p>
                    <Tree value={t.data} />
                </Card>
            ))}
        </>
    );
}
