// The state of the whole server, and the problems to look at first.
import { useMemo, useRef } from "preact/hooks";
import { query, usePoll } from "../api";
import { count, duration, durationShort, millis, plural, rate } from "../format";
import { Badge, Card, Empty, Skeleton, Tile, type Tone } from "../parts/basic";
import { Chart, type Line } from "../parts/chart";
import { RangePicker, useHistory, useRange } from "../parts/range";
import { link } from "../router";
import { groupName } from "./message";
import type { GroupRow, Health, Overview, Status } from "../types";

interface Buffers { pending: number; failed: number; dbHealthy: boolean }
interface Holder { kind: string; pid: number | null; name: string | null; state: string | null; ageSeconds: number | null }
interface Pg { oldTransactions?: Holder[] }
interface Finding { tone: Tone; text: string; href: string; what: string }

function findings(o: Overview | undefined, s: Status | undefined, b: Buffers | undefined, groups: GroupRow[] | undefined, h: Health | undefined, pg: Pg | undefined, growth: number | undefined): Finding[] {
    const all: Finding[] = [];
    if (b && !b.dbHealthy) all.push({ tone: "bad", what: "PostgreSQL", text: "is unavailable; pushes go to the file buffer", href: link(["system"]) });
    if (b && b.failed > 0) all.push({ tone: "bad", what: "File buffer", text: `${plural(b.failed, "message")} could not be stored`, href: link(["system"]) });
    if (b && b.pending > 0) all.push({ tone: "warn", what: "File buffer", text: `${plural(b.pending, "message")} wait for PostgreSQL`, href: link(["system"]) });
    for (const g of (groups ?? []).filter((g) => g.totalLag > 0 && g.maxTimeLag >= 60).sort((x, y) => y.maxTimeLag - x.maxTimeLag).slice(0, 4))
        all.push({ tone: g.maxTimeLag >= 3600 ? "bad" : "warn", what: `${groupName(g.name)} on ${g.queueName}`, text: `is ${duration(g.maxTimeLag)} behind, ${plural(g.totalLag, "message")} wait`, href: link(["groups", g.name, g.queueName]) });
    if (growth !== undefined && o && growth > 100 && growth > o.messages.pending / 2)
        all.push({ tone: "warn", what: "Backlog", text: `has grown by ${plural(growth, "message")} in the shown range`, href: link(["queues"], { sort: "pending" }) });
    const holder = (pg?.oldTransactions ?? []).find((t) => t.kind !== "session" || (t.ageSeconds ?? 0) >= 300);
    if (holder)
        all.push({ tone: (holder.ageSeconds ?? 0) >= 3600 ? "bad" : "warn", what: `A ${holder.kind} of PostgreSQL`, text: `keeps vacuum from freeing rows: ${holder.name || "without a name"}${holder.pid ? ", process " + holder.pid : ""}${holder.ageSeconds !== null ? ", open for " + duration(holder.ageSeconds) : ""}`, href: link(["system"]) });
    const dead = s?.deadLetterQueue;
    if (dead && dead.totalMessages > 0)
        all.push({ tone: "warn", what: "Dead letters", text: `${plural(dead.totalMessages, "message")}${dead.topErrors[0] ? `, most often “${dead.topErrors[0].error}”` : ""}`, href: link(["dead-letters"]) });
    const last = s?.throughput[0];
    if (last && last.dbErrors > 0) all.push({ tone: "warn", what: "PostgreSQL", text: `${plural(last.dbErrors, "failed call")} in the last recorded minute`, href: link(["system"]) });
    if (last && last.maxEventLoopLagMs > 250) all.push({ tone: "warn", what: "Event loop", text: `was blocked for up to ${millis(last.maxEventLoopLagMs)}`, href: link(["system"]) });
    for (const w of h?.warnings ?? []) all.push({ tone: "warn", what: "Listener", text: w, href: link(["system"]) });
    if (o && o.messages.pending > 0 && o.lag.time.max > 3600 && all.every((f) => !f.text.includes("behind")))
        all.push({ tone: "warn", what: "Backlog", text: `the oldest pending message waits for ${duration(o.lag.time.max)}`, href: link(["queues"], { sort: "lag" }) });
    return all;
}

const WINDOW_MS = 20000;

/** Messages per second now, from the changes of a total; undefined until it has changed twice. */
function useRate(total: number | undefined, at: string | undefined): number | undefined {
    const changes = useRef<{ at: number; total: number }[]>([]), seen = useRef<number>();
    const now = at ? Date.parse(at) : 0, all = changes.current;
    // The first total may be as old as the last count of the server, so only its changes have a known time.
    if (total !== undefined && seen.current !== undefined && total !== seen.current && now > (all.at(-1)?.at ?? 0)) all.push({ at: now, total });
    seen.current = total ?? seen.current;
    while (all.length > 2 && now - all[1]!.at > WINDOW_MS) all.shift();
    const first = all[0], last = all.at(-1);
    if (!first || !last) return undefined;
    if (now - last.at > WINDOW_MS) return 0;
    return last.at > first.at ? Math.max(0, ((last.total - first.total) * 1000) / (last.at - first.at)) : undefined;
}

export function OverviewPage() {
    const range = useRange();
    const overview = usePoll<Overview>("api/v1/resources/overview", 2000);
    const status = usePoll<Status>("api/v1/status" + query({ from: range.from, to: range.to }), 10000);
    const buffers = usePoll<Buffers>("api/v1/status/buffers", 2000);
    const groups = usePoll<GroupRow[]>("api/v1/consumer-groups" + query({ sort: "lag", limit: 20 }), 10000);
    const retries = usePoll<{ count: number }>("api/v1/scheduled/count" + query({ kind: "retry" }), 5000);
    const health = usePoll<Health>("health", 10000);
    const pg = usePoll<Pg>("api/v1/analytics/postgres-stats", 60000);
    const history = useHistory();
    const o = overview.data;
    const points = useMemo(() => [...(status.data?.throughput ?? [])].reverse(), [status.data]);
    const times = useMemo(() => points.map((p) => Date.parse(p.timestamp) / 1000), [points]);
    const flow = useMemo<Line[]>(() => [
        { label: "in", color: "a", values: points.map((p) => p.ingestedPerSecond), fill: true },
        { label: "out", color: "b", values: points.map((p) => p.processedPerSecond) },
    ], [points]);
    const lag = useMemo<Line[]>(() => [
        { label: "mean", color: "a", values: points.map((p) => p.avgLagMs / 1000) },
        { label: "maximum", color: "c", values: points.map((p) => p.maxLagMs / 1000) },
    ], [points]);
    const failures = useMemo<Line[]>(() => [
        { label: "failed", color: "c", values: points.map((p) => p.ackFailed) },
        { label: "dead letters", color: "bad", values: points.map((p) => p.dlqCount) },
    ], [points]);
    const cpu = useMemo<Line[]>(() => [{ label: "user and system", color: "a", fill: true, values: points.map((p) => (p.queenCpuUserPct ?? 0) + (p.queenCpuSysPct ?? 0)) }], [points]);
    const dbErrors = useMemo<Line[]>(() => [{ label: "failed calls", color: "bad", values: points.map((p) => p.dbErrors) }], [points]);
    const last = points.at(-1);
    const inNow = useRate(o?.messages.total, o?.timestamp), outNow = useRate(o?.messages.completed, o?.timestamp);
    const list = findings(o, status.data, buffers.data, groups.data, health.data, pg.data, history.growth);

    return (
        <>
            <div class="page-head"><h1>Overview</h1><RangePicker /></div>
            <div class="tiles wide">
                <Tile label="In" value={rate(inNow ?? last?.ingestedPerSecond)} unit="msg/s" note={inNow === undefined ? "last minute" : "now"} />
                <Tile label="Out" value={rate(outNow ?? last?.processedPerSecond)} unit="msg/s" note={outNow === undefined ? "last minute" : "now"} />
                <Tile label="Time to delivery" value={millis(last?.avgLagMs)} note={last ? `maximum ${millis(last.maxLagMs)}` : undefined} />
                <Tile label="Backlog" value={count(o?.messages.pending)} unit="messages" note={history.growth ? `${history.growth > 0 ? "+" : "−"}${count(Math.abs(history.growth))} in ${range.name}` : o ? `${count(o.messages.processing)} in flight` : undefined} href={link(["queues"], { sort: "pending" })} />
                <Tile label="Oldest pending" value={duration(o?.lag.time.max)} tone={o && o.lag.time.max > 3600 ? "warn" : undefined} note={o ? `mean of the queues ${duration(o.lag.time.avg)}` : undefined} href={link(["queues"], { sort: "lag" })} />
                <Tile label="Retries waiting" value={count(retries.data?.count)} unit="messages" note="for their next attempt" href={link(["scheduled"], { kind: "retry" })} />
                <Tile label="Dead letters" value={count(status.data?.deadLetterQueue.totalMessages)} unit="messages" tone={status.data && status.data.deadLetterQueue.totalMessages > 0 ? "warn" : undefined}
                    note={status.data ? `of ${plural(status.data.deadLetterQueue.affectedPartitions, "partition")}` : undefined} href={link(["dead-letters"])} />
                <Tile label="File buffer" value={count(buffers.data?.pending)} unit="messages" tone={buffers.data && !buffers.data.dbHealthy ? "bad" : undefined}
                    note={buffers.data ? (buffers.data.dbHealthy ? "PostgreSQL is connected" : "PostgreSQL is unavailable") : undefined} href={link(["system"])} />
            </div>
            <Card title="Needs attention" class="attention">
                {!o && !overview.error ? <Skeleton rows={2} /> : list.length === 0 ? <Empty>Nothing. All groups keep up, no dead letters, PostgreSQL answers.</Empty> : (
                    <ul class="findings">
                        {list.map((f, i) => (
                            <li key={i}><a href={f.href}><Badge tone={f.tone}>{f.tone === "bad" ? "problem" : "warning"}</Badge> <b><bdi>{f.what}</bdi></b> <bdi>{f.text}</bdi></a></li>
                        ))}
                    </ul>
                )}
            </Card>
            <div class="grid2">
                <Card title="Messages per second"><Chart label="Messages per second" times={times} lines={flow} format={rate} range={range.seconds} /></Card>
                <Card title="Backlog"><Chart label="Backlog" times={history.times} lines={history.backlog} format={count} range={range.seconds} /></Card>
                <Card title="Time from push to delivery"><Chart label="Time from push to delivery" times={times} lines={lag} format={durationShort} range={range.seconds} /></Card>
                <Card title="Age of the oldest pending message"><Chart label="Age of the oldest pending message" times={history.times} lines={history.age} format={durationShort} range={range.seconds} /></Card>
                <Card title="Retries waiting"><Chart label="Retries waiting" times={history.times} lines={history.retries} format={count} range={range.seconds} /></Card>
                <Card title="Failures per interval"><Chart label="Failures per interval" times={times} lines={failures} format={count} range={range.seconds} /></Card>
                <Card title="Dead letters"><Chart label="Dead letters" times={history.times} lines={history.dead} format={count} range={range.seconds} /></Card>
                <Card title="Messages in the file buffers"><Chart label="Messages in the file buffers" times={history.times} lines={history.buffered} format={count} range={range.seconds} /></Card>
                <Card title="CPU of the brokers"><Chart label="CPU in percent of a core" times={times} lines={cpu} format={(n) => n.toFixed(n < 10 ? 1 : 0) + " %"} range={range.seconds} /></Card>
                <Card title="Calls to PostgreSQL that failed"><Chart label="Failed calls" times={times} lines={dbErrors} format={count} range={range.seconds} /></Card>
            </div>
            <p class="dim totals">{o ? `${plural(o.queues, "queue")}, ${plural(o.partitions, "partition")}, ${plural(o.messages.total, "message")} ever pushed, ${plural(status.data?.leases.active ?? 0, "active lease")}.` : "\u00a0"}</p>
        </>
    );
}
