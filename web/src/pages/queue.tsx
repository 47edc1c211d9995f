// One queue: charts, partitions, groups, messages, options.
import { useMemo, useRef, useState } from "preact/hooks";
import { query, request, seg, usePoll, type Json } from "../api";
import { count, duration, durationShort, plural, rate } from "../format";
import { Action, Badge, Card, ConfirmByName, Dialog, Empty, Pager, Problem, SearchBox, Skeleton, State, Tabs, Tile, Time } from "../parts/basic";
import { Chart, type Line } from "../parts/chart";
import { ConfigureDialog } from "../parts/configure";
import { Heat } from "../parts/heat";
import { RangePicker, useRange } from "../parts/range";
import { go, link, setParams, usePlace } from "../router";
import type { GroupRow, MessageRow, QueueDetail, QueueOpsPoint } from "../types";

const SHOWN = 2000; // partitions in the heat map

export function QueuePage({ name }: { name: string }) {
    const { params } = usePlace();
    const tab = params.get("tab") ?? "charts";
    const detail = usePoll<QueueDetail>("api/v1/status/queues/" + seg(name) + query({ limit: 1, sort: "oldest" }), 2000);
    const [dialog, setDialog] = useState<"configure" | "push" | "delete" | "clear">();
    const d = detail.data;
    const oldest = d?.partitions.find((p) => p.pending > 0)?.oldestMessage;

    if (!d) return <>{detail.error ? <Problem text={detail.error} /> : <Skeleton rows={8} />}</>;
    return (
        <>
            <div class="page-head">
                <h1><a href={link(["queues"])} class="crumb">Queues</a> / <bdi>{name}</bdi></h1>
                <div class="buttons">
                    <button type="button" onClick={() => setDialog("push")}>Push a message</button>
                    <button type="button" onClick={() => setDialog("configure")}>Configure</button>
                    <button type="button" class="danger" onClick={() => setDialog("clear")}>Clear</button>
                    <button type="button" class="danger" onClick={() => setDialog("delete")}>Delete</button>
                </div>
            </div>
            <Problem text={detail.error} />
            <div class="tiles">
                <Tile label="Pending" value={count(d.totals.pending)} unit="messages" />
                <Tile label="In flight" value={count(d.totals.processing)} />
                <Tile label="Oldest pending" value={oldest ? <Time at={oldest} /> : "–"} />
                <Tile label="Completed" value={count(d.totals.completed)} note="still stored" />
                <Tile label="Dead letters" value={count(d.totals.deadLetter)} tone={d.totals.deadLetter ? "warn" : undefined} href={link(["dead-letters"], { queue: name })} />
                <Tile label="Partitions" value={count(d.pagination.total)} />
            </div>
            <Tabs value={tab} onChange={(t) => setParams({ tab: t, offset: undefined })}
                all={[["charts", "Charts"], ["partitions", "Partitions"], ["groups", "Groups"], ["messages", "Messages"], ["options", "Options"]]} />
            {tab === "charts" && <Charts name={name} />}
            {tab === "partitions" && <Partitions queue={name} />}
            {tab === "groups" && <Groups name={name} />}
            {tab === "messages" && <Messages name={name} />}
            {tab === "options" && <Options detail={d} />}
            {dialog === "push" && <PushDialog name={name} onClose={() => setDialog(undefined)} />}
            {dialog === "configure" && <ConfigureDialog queue={name} namespace={d.queue.namespace} task={d.queue.task} options={d.queue.options} onClose={() => setDialog(undefined)} onDone={detail.reload} />}
            {dialog === "clear" && <ConfirmByName title="Clear queue" verb="Remove all messages" name={name} onClose={() => setDialog(undefined)}
                text={<>This removes {plural(d.totals.total, "stored message")}. Queue, partitions and positions of groups stay.</>}
                action={async () => { await request("DELETE", `api/v1/queues/${seg(name)}/clear`); detail.reload(); }} />}
            {dialog === "delete" && <ConfirmByName title="Delete queue" verb="Delete the queue" name={name} onClose={() => setDialog(undefined)}
                text={<>This deletes the queue with {plural(d.totals.total, "stored message")}, its partitions, dead letters and scheduled messages.</>}
                action={async () => { await request("DELETE", `api/v1/resources/queues/${seg(name)}`); go(["queues"]); }} />}
        </>
    );
}

function Charts({ name }: { name: string }) {
    const range = useRange();
    const ops = usePoll<{ series: QueueOpsPoint[] }>("api/v1/analytics/queue-ops" + query({ queue: name, from: range.from, to: range.to }), 10000);
    const points = ops.data?.series ?? [];
    const times = useMemo(() => points.map((p) => Date.parse(p.bucket) / 1000), [ops.data]);
    const flow = useMemo<Line[]>(() => [
        { label: "push", color: "a", values: points.map((p) => p.pushPerSecond), fill: true },
        { label: "pop", color: "b", values: points.map((p) => p.popPerSecond) },
        { label: "ack", color: "c", values: points.map((p) => p.ackPerSecond) },
    ], [ops.data]);
    const lag = useMemo<Line[]>(() => [
        { label: "mean", color: "a", values: points.map((p) => p.avgLagMs / 1000) },
        { label: "maximum", color: "c", values: points.map((p) => p.maxLagMs / 1000) },
    ], [ops.data]);
    const parked = useMemo<Line[]>(() => [{ label: "waiting consumers", color: "b", values: points.map((p) => p.parkedCount) }], [ops.data]);
    return (
        <>
            <div class="page-head sub"><span class="dim">Recorded once a minute</span><RangePicker /></div>
            <Problem text={ops.error} />
            <div class="grid2">
                <Card title="Messages per second"><Chart label="Messages per second" times={times} lines={flow} format={rate} /></Card>
                <Card title="Time from push to delivery"><Chart label="Time from push to delivery" times={times} lines={lag} format={durationShort} /></Card>
                <Card title="Waiting consumers"><Chart label="Waiting consumers" times={times} lines={parked} format={count} /></Card>
            </div>
        </>
    );
}

function Partitions({ queue }: { queue: string }) {
    const [sort, setSort] = useState<"pending" | "oldest" | "name">("pending");
    const [search, setSearch] = useState("");
    const list = usePoll<QueueDetail>(`api/v1/status/queues/${seg(queue)}` + query({ limit: SHOWN, sort, search }), 5000);
    const last = useRef<QueueDetail>(); // stays while another search or order is loaded
    if (list.data) last.current = list.data;
    if (!last.current) return <Card>{list.error ? <Problem text={list.error} /> : <Skeleton rows={8} />}</Card>;
    const rows = last.current.partitions, total = last.current.pagination.total;
    return (
        <>
            <Problem text={list.error} />
            <Card title={rows.length < total ? `${count(rows.length)} of ${count(total)} partitions` : plural(total, "partition")} side={<span class="dim">colour: pending messages</span>}>
                <Heat cells={rows.map((p) => ({ name: p.name, value: p.pending, note: `${count(p.pending)} pending, ${count(p.processing)} in flight` }))} onPick={setSearch} />
            </Card>
            <Card title="Partitions" side={
                <>
                    <SearchBox label="Name contains" value={search} onChange={setSearch} />
                    <select aria-label="Order" value={sort} onChange={(e) => setSort(e.currentTarget.value as "pending")}>
                        <option value="pending">most pending first</option>
                        <option value="oldest">longest wait first</option>
                        <option value="name">by name</option>
                    </select>
                </>
            }>
                <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                    <table>
                        <thead><tr><th>Partition</th><th class="num">Pending</th><th class="num">In flight</th><th class="num">Stored</th><th class="num">Dead letters</th><th>Oldest pending</th><th>Last activity</th></tr></thead>
                        <tbody>
                            {rows.slice(0, 100).map((p) => (
                                <tr key={p.id}>
                                    <td><bdi>{p.name}</bdi></td>
                                    <td class="num">{count(p.pending)}</td>
                                    <td class="num">{count(p.processing)}</td>
                                    <td class="num">{count(p.total)}</td>
                                    <td class="num">{count(p.dlq)}</td>
                                    <td>{p.pending > 0 ? <Time at={p.oldestMessage} /> : "–"}</td>
                                    <td><Time at={p.lastActivity} /></td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
                {total > 100 && <p class="dim">The first 100 of {count(total)}. Search to narrow the list.</p>}
            </Card>
        </>
    );
}

function Groups({ name }: { name: string }) {
    const groups = usePoll<GroupRow[]>("api/v1/consumer-groups" + query({ queue: name }), 3000);
    const [seek, setSeek] = useState<GroupRow>();
    const rows = (groups.data ?? []).filter((g) => g.queueName === name);
    return (
        <Card title="Consumer groups">
            <Problem text={groups.error} />
            {!groups.data ? <Skeleton rows={3} /> : rows.length === 0 ? <Empty>No consumer has popped from this queue yet.</Empty> : (
                <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                    <table>
                        <thead><tr><th>Group</th><th>State</th><th class="num">Behind</th><th class="num">Oldest</th><th class="num">Partitions behind</th><th /></tr></thead>
                        <tbody>
                            {rows.map((g) => (
                                <tr key={g.name}>
                                    <td><a href={link(["groups", g.name, name])}><bdi>{g.name === "__QUEUE_MODE__" ? "(queue mode)" : g.name}</bdi></a></td>
                                    <td><State value={g.state} /></td>
                                    <td class="num">{plural(g.totalLag, "message")}</td>
                                    <td class="num">{g.maxTimeLag ? duration(g.maxTimeLag) : "–"}</td>
                                    <td class="num">{count(g.partitionsWithLag)} of {count(g.members)}</td>
                                    <td class="num"><button type="button" onClick={() => setSeek(g)}>Seek</button></td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
            {seek && <SeekDialog group={seek} onClose={() => { setSeek(undefined); groups.reload(); }} />}
        </Card>
    );
}

export function SeekDialog({ group, onClose }: { group: GroupRow; onClose: () => void }) {
    const [to, setTo] = useState<"begin" | "time" | "end">("time");
    const [time, setTime] = useState(() => new Date(Date.now() - 3600e3 - new Date().getTimezoneOffset() * 60e3).toISOString().slice(0, 16));
    const text = {
        begin: "The group receives every message that is still stored, again.",
        end: `The group skips everything that waits now: ${plural(group.totalLag, "message")} would never be delivered to it.`,
        time: "The group continues behind the last message pushed at that time or before. Messages pushed later are delivered, again if it had consumed them.",
    }[to];
    const act = async () => {
        const body = to === "end" ? { toEnd: true } : { timestamp: to === "begin" ? "1970-01-01T00:00:00Z" : new Date(time).toISOString() };
        await request("POST", `api/v1/consumer-groups/${seg(group.name)}/queues/${seg(group.queueName)}/seek`, body);
        onClose();
    };
    return (
        <Dialog title={`Move ${group.name} on ${group.queueName}`} onClose={onClose}>
            <fieldset>
                <legend>New position</legend>
                {(["begin", "time", "end"] as const).map((v) => (
                    <label key={v} class="flag"><input type="radio" name="to" checked={to === v} onChange={() => setTo(v)} />
                        {v === "begin" ? "The first stored message" : v === "end" ? "The end" : "A time (local)"}</label>
                ))}
                {to === "time" && <input type="datetime-local" aria-label="Time" value={time} onInput={(e) => setTime(e.currentTarget.value)} />}
            </fieldset>
            <p>{text}</p>
            <p class="dim">Leases of the group end; consumers that acknowledge under them get an error.</p>
            <div class="buttons"><button type="button" onClick={onClose}>Cancel</button><Action label="Move the group" kind={to === "end" ? "danger" : "primary"} action={act} /></div>
        </Dialog>
    );
}

const PAGE = 50;

function Messages({ name }: { name: string }) {
    const { params } = usePlace();
    const [live, setLive] = useState(true);
    const offset = Number(params.get("offset") ?? 0) || 0;
    const status = params.get("status") ?? "";
    const page = usePoll<{ messages: MessageRow[] }>("api/v1/messages" + query({ queue: name, limit: PAGE, offset, status, from: "1970-01-01T00:00:00Z" }), live && offset === 0 ? 2000 : 0);
    const rows = page.data?.messages ?? [];
    return (
        <Card title="Messages, newest first" side={
            <>
                <select aria-label="Status" value={status} onChange={(e) => setParams({ status: e.currentTarget.value, offset: undefined })}>
                    <option value="">all</option>
                    {["pending", "processing", "completed", "dead_letter"].map((s) => <option key={s} value={s}>{s.replace("_", " ")}</option>)}
                </select>
                <label class="flag"><input type="checkbox" checked={live} onChange={(e) => setLive(e.currentTarget.checked)} />live</label>
            </>
        }>
            <Problem text={page.error} />
            {!page.data ? <Skeleton rows={8} /> : rows.length === 0 ? <Empty>No message.</Empty> : <MessageTable rows={rows} />}
            <Pager offset={offset} limit={PAGE} shown={rows.length} onMove={(o) => setParams({ offset: o || undefined })} />
        </Card>
    );
}

export function MessageTable({ rows }: { rows: MessageRow[] }) {
    return (
        <div class="scroll" tabIndex={0} role="group" aria-label="Table">
            <table>
                <thead><tr><th>Transaction id</th><th>Partition</th><th>Status</th><th>Pushed</th></tr></thead>
                <tbody>
                    {rows.map((m) => (
                        <tr key={m.id}>
                            <td class="mono"><a href={link(["message", m.id])}><bdi>{m.transactionId}</bdi></a></td>
                            <td><bdi>{m.partition}</bdi></td>
                            <td><State value={m.status} /></td>
                            <td><Time at={m.createdAt} exact /></td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

function Options({ detail }: { detail: QueueDetail }) {
    return (
        <Card title="Options">
            <dl class="facts">
                <dt>Namespace</dt><dd><bdi>{detail.queue.namespace || "–"}</bdi></dd>
                <dt>Task</dt><dd><bdi>{detail.queue.task || "–"}</bdi></dd>
                <dt>Created</dt><dd><Time at={detail.queue.createdAt} exact /></dd>
                {Object.entries(detail.queue.options).map(([k, v]) => (
                    <><dt key={k}>{k}</dt><dd>{typeof v === "boolean" ? <Badge tone={v ? "ok" : "idle"}>{v ? "on" : "off"}</Badge> : <span class="mono">{typeof v === "object" ? JSON.stringify(v) : String(v)}</span>}</dd></>
                ))}
            </dl>
        </Card>
    );
}

function PushDialog({ name, onClose }: { name: string; onClose: () => void }) {
    const [partition, setPartition] = useState("Default");
    const [payload, setPayload] = useState('{\n  "hello": "world"\n}');
    const [done, setDone] = useState<string>();
    const push = async () => {
        let value: Json;
        try {
            value = JSON.parse(payload) as Json;
        } catch (e) {
            throw new Error("The payload is not valid JSON: " + (e as Error).message);
        }
        const [first] = await request<{ status: string; message_id: string }[]>("POST", "api/v1/push", { items: [{ queue: name, partition, payload: value }] });
        setDone(first?.message_id);
    };
    return (
        <Dialog title={"Push a message to " + name} onClose={onClose}>
            <form class="form" onSubmit={(e) => e.preventDefault()}>
                <label>Partition<input value={partition} onInput={(e) => setPartition(e.currentTarget.value)} spellcheck={false} /></label>
                <label>Payload (JSON)<textarea rows={8} class="mono" value={payload} onInput={(e) => setPayload(e.currentTarget.value)} spellcheck={false} /></label>
            </form>
            {done && <p role="status">Pushed: <a href={link(["message", done])}>{done}</a></p>}
            <div class="buttons"><button type="button" onClick={onClose}>Close</button><Action label="Push" kind="primary" action={push} /></div>
        </Dialog>
    );
}
