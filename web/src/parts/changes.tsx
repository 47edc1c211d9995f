// Changes of the owners of partitions over time: rebalances, releases and claims that expired.
import { useMemo } from "preact/hooks";
import { query, seg, usePoll } from "../api";
import { count, plural } from "../format";
import { Badge, Card, Empty, Problem, Time } from "./basic";
import { Chart, type Line } from "./chart";
import { RangePicker, useRange } from "./range";

interface Change { at: string; partition: string; epoch: number; previous: string | null; owner: string | null; expired: boolean }
interface Changes { total: number; changes: Change[]; buckets: { from: string; taken: number; released: number; expired: number }[] }

const BARS = 60;

export function OwnerChanges({ group, queue }: { group: string; queue: string }) {
    const range = useRange();
    const width = Math.round((range.seconds[1] - range.seconds[0]) / BARS);
    const list = usePoll<Changes>(`api/v1/consumer-groups/${seg(group)}/queues/${seg(queue)}/owners/changes` + query({ from: range.from, to: range.to, bucketSeconds: width, limit: 20 }), 5000);
    const buckets = list.data?.buckets;
    const times = useMemo(() => (buckets ?? []).map((b) => Date.parse(b.from) / 1000), [buckets]);
    const lines = useMemo<Line[]>(() => [
        { label: "taken", color: "a", fill: true, values: (buckets ?? []).map((b) => b.taken) },
        { label: "released", color: "b", values: (buckets ?? []).map((b) => b.released) },
        { label: "taken from an expired owner", color: "bad", values: (buckets ?? []).map((b) => b.expired) },
    ], [buckets]);
    return (
        <Card title="Changes of owners" side={<><span class="dim">{list.data ? plural(list.data.total, "change") : ""}</span><RangePicker /></>}>
            <Problem text={list.error} />
            <Chart label="Changes of owners" times={times} lines={lines} format={count} range={range.seconds} />
            {list.data && (list.data.changes.length === 0 ? <Empty>No partition has changed its owner.</Empty> : (
                <div class="scroll short" tabIndex={0} role="group" aria-label="Changes">
                    <table>
                        <thead><tr><th>When</th><th>Partition</th><th>From</th><th>To</th><th class="num">Epoch</th></tr></thead>
                        <tbody>{list.data.changes.map((c) => (
                            <tr key={c.partition + c.epoch}><td class="nowrap"><Time at={c.at} exact /></td><td><bdi>{c.partition}</bdi></td>
                                <td>{c.previous ? <bdi>{c.previous}</bdi> : <span class="dim">none</span>} {c.expired && <Badge tone="bad">expired</Badge>}</td>
                                <td>{c.owner ? <bdi>{c.owner}</bdi> : <Badge tone="idle">released</Badge>}</td><td class="num">{count(c.epoch)}</td></tr>
                        ))}</tbody>
                    </table>
                </div>
            ))}
        </Card>
    );
}
