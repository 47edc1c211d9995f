// Messages for later, waiting retries, and recurring messages.
import { useMemo, useState } from "preact/hooks";
import { query, request, seg, usePoll } from "../api";
import { count, plural } from "../format";
import { Action, Badge, Card, Dialog, Empty, Opener, Pager, Problem, Skeleton, State, Tabs, Time, useNow } from "../parts/basic";
import { Tree } from "../parts/tree";
import { Chart, type Line } from "../parts/chart";
import { link, setParams, usePlace } from "../router";
import { Reschedule } from "./message";
import type { MessageRow, Schedule, ScheduledRow } from "../types";

const PAGE = 100;
const SPANS: Record<string, [number, number]> = { hour: [3600, 60], day: [86400, 48], week: [7 * 86400, 56] }; // seconds, bars

export function ScheduledPage() {
    const { params } = usePlace();
    const tab = params.get("tab") ?? "waiting";
    return (
        <>
            <div class="page-head"><h1>Scheduled</h1></div>
            <Tabs value={tab} all={[["waiting", "Waiting messages"], ["recurring", "Recurring messages"]]} onChange={(t) => setParams({ tab: t })} />
            {tab === "recurring" ? <Recurring /> : <Waiting />}
        </>
    );
}

function Waiting() {
    const { params } = usePlace();
    const kind = params.get("kind") ?? "", queue = params.get("queue") ?? "";
    const [cursors, setCursors] = useState<string[]>([]);
    const [move, setMove] = useState<ScheduledRow>();
    const page = usePoll<{ scheduled: ScheduledRow[]; next: string | null }>("api/v1/scheduled" + query({ limit: PAGE, kind, queue, cursor: cursors.at(-1) }), 5000);
    const total = usePoll<{ count: number }>("api/v1/scheduled/count" + query({ kind, queue }), 5000);
    const rows = page.data?.scheduled ?? [];
    return (
        <>
            <DueChart kind={kind} queue={queue} />
            <Card title={total.data ? plural(total.data.count, "waiting message") : "Waiting messages"} side={
                <>
                    {queue && <button type="button" onClick={() => setParams({ queue: undefined })}>Queue {queue} ×</button>}
                    <select aria-label="Kind" value={kind} onChange={(e) => { setCursors([]); setParams({ kind: e.currentTarget.value }); }}>
                        <option value="">all kinds</option><option value="push">messages for later</option><option value="retry">retries</option>
                    </select>
                </>
            }>
                <Problem text={page.error} />
                {!page.data ? <Skeleton rows={6} /> : rows.length === 0 ? <Empty>Nothing waits.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Due</th><th>Message</th><th>Queue</th><th>Kind</th><th><span class="sr">Actions</span></th></tr></thead>
                            <tbody>
                                {rows.map((s) => (
                                    <tr key={s.id}>
                                        <td><Time at={s.scheduledAt} exact /></td>
                                        <td class="mono"><a href={link(["search"], { q: s.transactionId, queue: s.queue, partition: s.partition })}><bdi>{s.transactionId}</bdi></a></td>
                                        <td><button type="button" class="quiet" onClick={() => setParams({ queue: s.queue })}><bdi>{s.queue}</bdi></button> / <bdi>{s.partition}</bdi></td>
                                        <td>{s.kind === "retry" ? <><Badge tone="warn">retry</Badge> <span class="dim">attempt {s.attempt} · <bdi>{s.consumerGroup}</bdi></span></> : <Badge tone="info">message</Badge>}</td>
                                        <td class="num nowrap row-actions">
                                            <Opener op="reschedule" label="Move" onClick={() => setMove(s)} />{" "}
                                            <Action op="reschedule" label="Now" action={async () => { await request("PATCH", "api/v1/scheduled/" + seg(s.id), { delaySeconds: 0 }); page.reload(); }} />{" "}
                                            <Action op="cancel_scheduled_one" label="Cancel" kind="danger" action={async () => { await request("DELETE", "api/v1/scheduled/" + seg(s.id)); page.reload(); }} />
                                        </td>
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                )}
                <nav class="pager" aria-label="Pages">
                    <button type="button" disabled={cursors.length === 0} onClick={() => setCursors(cursors.slice(0, -1))}>Previous</button>
                    <button type="button" disabled={!page.data?.next} onClick={() => setCursors([...cursors, page.data!.next!])}>Next</button>
                </nav>
            </Card>
            {move && <Reschedule from={move.scheduledAt} move={(body) => request("PATCH", "api/v1/scheduled/" + seg(move.id), body)} onClose={() => { setMove(undefined); page.reload(); }} />}
        </>
    );
}

/** How many messages fall due when. */
function DueChart({ kind, queue }: { kind: string; queue: string }) {
    const [span, setSpan] = useState("day");
    const [seconds, bars] = SPANS[span]!;
    const width = seconds / bars;
    const start = Math.floor(useNow(10000) / 1000 / width) * width; // moves one bar at a time
    const at = (s: number) => new Date(s * 1000).toISOString();
    const buckets = usePoll<{ buckets: { from: string; count: number }[] }>("api/v1/scheduled/count" + query({ kind, queue, from: at(start), to: at(start + seconds), bucketSeconds: width }), 10000);
    const times = useMemo(() => (buckets.data?.buckets ?? []).map((b) => Date.parse(b.from) / 1000), [buckets.data]);
    const lines = useMemo<Line[]>(() => [{ label: "due", color: "a", fill: true, bars: true, values: (buckets.data?.buckets ?? []).map((b) => b.count || null) }], [buckets.data]);
    return (
        <Card title="Due" side={
            <div class="segmented" role="group" aria-label="Period">{Object.keys(SPANS).map((s) => <button key={s} type="button" aria-pressed={s === span} onClick={() => setSpan(s)}>next {s}</button>)}</div>
        }>
            <Chart label="Messages due" times={times} lines={lines} format={count} range={[start, start + seconds]} />
        </Card>
    );
}

function Recurring() {
    const { params } = usePlace();
    const offset = Number(params.get("offset") ?? 0) || 0;
    const list = usePoll<{ schedules: Schedule[] }>("api/v1/schedules" + query({ limit: PAGE, offset }), 3000);
    const [deleting, setDeleting] = useState<Schedule>();
    const [shown, setShown] = useState<Schedule>();
    const act = (s: Schedule, what: string) => async () => { await request("POST", `api/v1/schedules/${seg(s.name)}/${what}`); list.reload(); };
    return (
        <Card title="Recurring messages">
            <Problem text={list.error} />
            {!list.data ? <Skeleton rows={3} /> : list.data.schedules.length === 0 ? <Empty>None. Create one with POST /api/v1/schedules or queen schedule.</Empty> : (
                <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                    <table>
                        <thead><tr><th>Name</th><th>Queue</th><th>Cron</th><th>Next run</th><th>Last run</th><th class="num">Runs</th><th><span class="sr">Actions</span></th></tr></thead>
                        <tbody>
                            {list.data.schedules.map((s) => (
                                <tr key={s.id}>
                                    <td><button type="button" class="quiet" onClick={() => setShown(s)}><bdi>{s.name}</bdi></button> {s.paused && <Badge tone="warn">paused</Badge>}</td>
                                    <td><a href={link(["queues", s.queue])}><bdi>{s.queue}</bdi></a></td>
                                    <td class="mono">{s.cron} <span class="dim">{s.timezone}</span></td>
                                    <td>{s.paused ? "–" : <Time at={s.nextRunAt} exact />}</td>
                                    <td><Time at={s.lastRunAt} />{s.lastMessageId && <> <a href={link(["message", s.lastMessageId])}>message</a></>}</td>
                                    <td class="num">{count(s.runs)}</td>
                                    <td class="num nowrap row-actions">
                                        <Action op="run_schedule_now" label="Run now" action={act(s, "run")} />{" "}
                                        <Action op={s.paused ? "resume_schedule" : "pause_schedule"} label={s.paused ? "Resume" : "Pause"} action={act(s, s.paused ? "resume" : "pause")} />{" "}
                                        <Opener op="delete_schedule" label="Delete" kind="danger" onClick={() => setDeleting(s)} />
                                    </td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
            <Pager offset={offset} limit={PAGE} shown={list.data?.schedules.length ?? 0} onMove={(o) => setParams({ offset: o || undefined })} />
            {shown && <ScheduleDialog name={shown.name} onClose={() => setShown(undefined)} />}
            {deleting && (
                <Dialog title={"Delete " + deleting.name} onClose={() => setDeleting(undefined)}>
                    <p>No further messages are made. Messages it has made stay.</p>
                    <div class="buttons"><button type="button" onClick={() => setDeleting(undefined)}>Cancel</button>
                        <Action label="Delete" kind="danger" action={async () => { await request("DELETE", "api/v1/schedules/" + seg(deleting.name)); setDeleting(undefined); list.reload(); }} /></div>
                </Dialog>
            )}
        </Card>
    );
}

const RUNS = 5;

/** The next runs of a recurring message in local time, and what became of the last ones. */
function ScheduleDialog({ name, onClose }: { name: string; onClose: () => void }) {
    const one = usePoll<Schedule & { nextRuns: string[] }>("api/v1/schedules/" + seg(name) + query({ runs: RUNS }), 5000);
    const s = one.data;
    const recent = usePoll<{ messages: MessageRow[] }>(s ? "api/v1/messages" + query({ queue: s.queue, partition: s.partition, limit: 100, from: "1970-01-01T00:00:00Z" }) : null, 5000);
    const made = (recent.data?.messages ?? []).filter((m) => s && m.transactionId.startsWith(`schedule:${s.id}:`)).slice(0, RUNS);
    return (
        <Dialog title={name} onClose={onClose}>
            <Problem text={one.error ?? recent.error} />
            {!s ? (one.error ? null : <Skeleton rows={6} />) : (
                <>
                    <dl class="facts">
                        <dt>Queue</dt><dd><bdi>{s.queue}</bdi> / <bdi>{s.partition}</bdi></dd>
                        <dt>Cron</dt><dd class="mono">{s.cron} <span class="dim">{s.timezone}</span></dd>
                        <dt>Missed runs</dt><dd>{s.missed === "skip" ? "are skipped" : s.missed === "once" ? "are made up for once" : "are all made up for"}</dd>
                    </dl>
                    <h3>Next runs, local time</h3>
                    {s.paused ? <p class="dim">None while it is paused.</p> : s.nextRuns.length === 0 ? <p class="dim">None.</p> : <ul class="preview">{s.nextRuns.map((at) => <li key={at}><Time at={at} exact /></li>)}</ul>}
                    <h3>Last runs</h3>
                    {!recent.data ? <Skeleton rows={2} /> : made.length === 0 ? <p class="dim">{s.runs === 0 ? "It has not run yet." : "Their messages are not among the newest 100 of the partition."}</p> : (
                        <ul class="preview">{made.map((m) => <li key={m.id}><a href={link(["message", m.id])}><Time at={m.createdAt} exact /></a> <State value={m.status} /></li>)}</ul>
                    )}
                    <h3>Payload</h3>
                    <Tree value={s.payload} />
                </>
            )}
        </Dialog>
    );
}
