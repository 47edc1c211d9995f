// The state of the whole server, and the problems to look at first.
import { useMemo } from "preact/hooks";
import { query, usePoll } from "../api";
import { count, duration, durationShort, millis, plural, rate } from "../format";
import { Badge, Card, Empty, Skeleton, Tile, type Tone } from "../parts/basic";
import { Chart, type Line } from "../parts/chart";
import { RangePicker, useRange } from "../parts/range";
import { link } from "../router";
import type { GroupRow, Health, Overview, Status } from "../types";

interface Buffers { pending: number; failed: number; dbHealthy: boolean }
interface Finding { tone: Tone; text: string; href: string; what: string }

function findings(o: Overview | undefined, s: Status | undefined, b: Buffers | undefined, groups: GroupRow[] | undefined, h: Health | undefined): Finding[] {
    const all: Finding[] = [];
    if (b && !b.dbHealthy) all.push({ tone: "bad", what: "PostgreSQL", text: "is unavailable; pushes go to the file buffer", href: link(["system"]) });
    if (b && b.failed > 0) all.push({ tone: "bad", what: "File buffer", text: `${plural(b.failed, "message")} could not be stored`, href: link(["system"]) });
    if (b && b.pending > 0) all.push({ tone: "warn", what: "File buffer", text: `${plural(b.pending, "message")} wait for PostgreSQL`, href: link(["system"]) });
    for (const g of (groups ?? []).filter((g) => g.totalLag > 0 && g.maxTimeLag >= 60).sort((x, y) => y.maxTimeLag - x.maxTimeLag).slice(0, 4))
        all.push({ tone: g.maxTimeLag >= 3600 ? "bad" : "warn", what: `${g.name} on ${g.queueName}`, text: `is ${duration(g.maxTimeLag)} behind, ${plural(g.totalLag, "message")} wait`, href: link(["queues", g.queueName], { tab: "groups" }) });
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

export function OverviewPage() {
    const range = useRange();
    const overview = usePoll<Overview>("api/v1/resources/overview", 2000);
    const status = usePoll<Status>("api/v1/status" + query({ from: range.from, to: range.to }), 10000);
    const buffers = usePoll<Buffers>("api/v1/status/buffers", 2000);
    const groups = usePoll<GroupRow[]>("api/v1/consumer-groups" + query({ sort: "lag", limit: 20 }), 10000);
    const retries = usePoll<{ count: number }>("api/v1/scheduled/count" + query({ kind: "retry" }), 5000);
    const health = usePoll<Health>("health", 10000);
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
    const last = points.at(-1);
    const list = findings(o, status.data, buffers.data, groups.data, health.data);

    return (
        <>
            <div class="page-head"><h1>Overview</h1><RangePicker /></div>
            <div class="tiles wide">
                <Tile label="In" value={rate(last?.ingestedPerSecond)} unit="msg/s" note="last minute" />
                <Tile label="Out" value={rate(last?.processedPerSecond)} unit="msg/s" note="last minute" />
                <Tile label="Time to delivery" value={millis(last?.avgLagMs)} note={last ? `maximum ${millis(last.maxLagMs)}` : undefined} />
                <Tile label="Backlog" value={count(o?.messages.pending)} unit="messages" note={o ? `${count(o.messages.processing)} in flight` : undefined} href={link(["queues"], { sort: "pending" })} />
                <Tile label="Oldest pending" value={duration(o?.lag.time.max)} tone={o && o.lag.time.max > 3600 ? "warn" : undefined} href={link(["queues"], { sort: "lag" })} />
                <Tile label="Retries waiting" value={count(retries.data?.count)} href={link(["scheduled"], { kind: "retry" })} />
                <Tile label="Dead letters" value={count(o?.messages.deadLetter)} tone={o && o.messages.deadLetter > 0 ? "warn" : undefined} href={link(["dead-letters"])} />
                <Tile label="File buffer" value={count(buffers.data?.pending)} unit="messages" tone={buffers.data && !buffers.data.dbHealthy ? "bad" : undefined}
                    note={buffers.data ? (buffers.data.dbHealthy ? "PostgreSQL is connected" : "PostgreSQL is unavailable") : undefined} href={link(["system"])} />
            </div>
            <Card title="Needs attention" class="attention">
                {!o && !overview.error ? <Skeleton rows={2} /> : list.length === 0 ? <Empty>Nothing. All groups keep up, no dead letters, PostgreSQL answers.</Empty> : (
                    <ul class="findings">
                        {list.map((f, i) => (
                            <li key={i}><a href={f.href}><Badge tone={f.tone}>{f.tone === "bad" ? "problem" : "look"}</Badge> <b><bdi>{f.what}</bdi></b> <bdi>{f.text}</bdi></a></li>
                        ))}
                    </ul>
                )}
            </Card>
            <div class="grid2">
                <Card title="Messages per second"><Chart label="Messages per second" times={times} lines={flow} format={rate} /></Card>
                <Card title="Time from push to delivery"><Chart label="Time from push to delivery" times={times} lines={lag} format={durationShort} /></Card>
                <Card title="Failures per interval"><Chart label="Failures per interval" times={times} lines={failures} format={count} /></Card>
                <Card title="Totals">
                    <dl class="facts">
                        <dt>Queues</dt><dd>{count(o?.queues)}</dd>
                        <dt>Partitions</dt><dd>{count(o?.partitions)}</dd>
                        <dt>Messages ever pushed</dt><dd>{count(o?.messages.total)}</dd>
                        <dt>Leases</dt><dd>{count(status.data?.leases.active)}</dd>
                    </dl>
                </Card>
            </div>
        </>
    );
}
