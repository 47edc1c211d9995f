// Processors: which of them own how many partitions of a group, and when that last changed.
import { query, usePoll } from "../api";
import { count, plural } from "../format";
import { Badge, Card, Empty, Problem, Skeleton, Time } from "../parts/basic";
import { Bar } from "../parts/chart";
import { link } from "../router";

interface Group { queue: string; consumerGroup: string; partitions: number; owned: number; changedAt: string | null; changes: number; processors: { processor: string; partitions: number }[] }

export function ProcessorsPage() {
    const list = usePoll<{ groups: Group[] }>("api/v1/processors" + query({}), 2000);
    const groups = list.data?.groups ?? [];
    return (
        <>
            <div class="page-head"><h1>Processors</h1></div>
            <Problem text={list.error} />
            {!list.data ? (list.error ? null : <Skeleton rows={6} />) : groups.length === 0 ? (
                <Card><Empty>No processor has owned a partition. Queues with the option “partitions” can have processors.</Empty></Card>
            ) : groups.map((g) => (
                <Card key={g.queue + "\n" + g.consumerGroup}
                    title={<><a href={link(["groups", g.consumerGroup, g.queue], { tab: "owners" })}><bdi>{g.consumerGroup}</bdi></a> on <a href={link(["queues", g.queue])}><bdi>{g.queue}</bdi></a></>}
                    side={<>{g.owned < g.partitions ? <Badge tone="warn">{plural(g.partitions - g.owned, "partition")} without an owner</Badge> : <Badge tone="ok">every partition has an owner</Badge>}
                        <span class="dim">{plural(g.changes, "change")} of owners, the last <Time at={g.changedAt} /></span></>}>
                    {g.processors.length === 0 ? <Empty>No live processor.</Empty> : (
                        <table>
                            <thead><tr><th>Processor</th><th class="num">Partitions</th></tr></thead>
                            <tbody>{g.processors.map((p) => (
                                <tr key={p.processor}><td><bdi>{p.processor}</bdi></td><td class="num"><span class="withbar"><Bar part={p.partitions / g.partitions} tone="a" />{count(p.partitions)} of {count(g.partitions)}</span></td></tr>
                            ))}</tbody>
                        </table>
                    )}
                </Card>
            ))}
        </>
    );
}
