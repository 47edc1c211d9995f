// One queue: charts, partitions, groups, messages, options.
import { useMemo, useRef, useState } from "preact/hooks";
import { query, request, seg, usePoll, type Json } from "../api";
import { count, duration, durationShort, plural, rate } from "../format";
import { Action, Badge, Card, ConfirmByName, Dialog, Empty, Opener, Pager, Problem, SearchBox, Skeleton, State, Tabs, Tile, Time } from "../parts/basic";
import { Chart, type Line } from "../parts/chart";
import { ConfigureDialog, OPTIONS } from "../parts/configure";
import { PartitionMap } from "../parts/heat";
import { describePolicy } from "../parts/policy";
import { RangePicker, useHistory, useRange } from "../parts/range";
import { SeekDialog } from "../parts/seek";
import { go, link, setParams, usePlace } from "../router";
import type { GroupRow, MessageRow, QueueDetail, QueueOpsPoint } from "../types";

const PAGE = 50;

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
                    <Opener op="push" label="Push a message" onClick={() => setDialog("push")} />
                    <Opener op="configure" label="Configure" onClick={() => setDialog("configure")} />
                    <Opener op="clear_queue" label="Clear" kind="danger" onClick={() => setDialog("clear")} />
                    <Opener op="delete_queue" label="Delete" kind="danger" onClick={() => setDialog("delete")} />
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
    const history = useHistory(name);
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
                <Card title="Backlog"><Chart label="Backlog" times={history.times} lines={history.backlog} format={count} range={range.seconds} /></Card>
                <Card title="Messages per second"><Chart label="Messages per second" times={times} lines={flow} format={rate} range={range.seconds} /></Card>
                <Card title="Age of the oldest pending message"><Chart label="Age of the oldest pending message" times={history.times} lines={history.age} format={durationShort} range={range.seconds} /></Card>
                <Card title="Time from push to delivery"><Chart label="Time from push to delivery" times={times} lines={lag} format={durationShort} range={range.seconds} /></Card>
                <Card title="Waiting consumers"><Chart label="Waiting consumers" times={times} lines={parked} format={count} range={range.seconds} /></Card>
                <Card title="Dead letters"><Chart label="Dead letters" times={history.times} lines={history.dead} format={count} range={range.seconds} /></Card>
            </div>
        </>
    );
}

function Partitions({ queue }: { queue: string }) {
    const [sort, setSort] = useState<"pending" | "oldest" | "name">("pending");
    const [search, setSearch] = useState("");
    const [offset, setOffset] = useState(0);
    const list = usePoll<QueueDetail>(`api/v1/status/queues/${seg(queue)}` + query({ limit: PAGE, offset, sort, search }), 2000);
    const last = useRef<QueueDetail>(); // stays while another search or order is loaded
    if (list.data) last.current = list.data;
    const find = (text: string) => { setSearch(text); setOffset(0); };
    const rows = last.current?.partitions ?? [];
    return (
        <>
            <PartitionMap queue={queue} onPick={find} />
            <Card title="Partitions" side={
                <>
                    <SearchBox label="Name contains" value={search} onChange={find} />
                    <select aria-label="Order" value={sort} onChange={(e) => { setSort(e.currentTarget.value as "pending"); setOffset(0); }}>
                        <option value="pending">most pending first</option>
                        <option value="oldest">longest wait first</option>
                        <option value="name">by name</option>
                    </select>
                </>
            }>
                <Problem text={list.error} />
                {!last.current ? <Skeleton rows={8} /> : rows.length === 0 ? <Empty>No partition.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Partition</th><th class="num">Pending</th><th class="num">In flight</th><th class="num">Stored</th><th class="num">Dead letters</th><th>Oldest pending</th><th>Last activity</th></tr></thead>
                            <tbody>
                                {rows.map((p) => (
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
                )}
                <Pager offset={offset} limit={PAGE} shown={rows.length} total={last.current?.pagination.total} onMove={setOffset} />
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
                        <thead><tr><th>Group</th><th>State</th><th class="num">Behind</th><th class="num">Oldest</th><th class="num">Partitions behind</th><th><span class="sr">Actions</span></th></tr></thead>
                        <tbody>
                            {rows.map((g) => (
                                <tr key={g.name}>
                                    <td><a href={link(["groups", g.name, name])}><bdi>{g.name === "__QUEUE_MODE__" ? "(queue mode)" : g.name}</bdi></a></td>
                                    <td><State value={g.state} /></td>
                                    <td class="num">{plural(g.totalLag, "message")}</td>
                                    <td class="num">{g.maxTimeLag ? duration(g.maxTimeLag) : "–"}</td>
                                    <td class="num">{count(g.partitionsWithLag)} of {count(g.members)}</td>
                                    <td class="num row-actions"><Opener op="seek_group" label="Seek" onClick={() => setSeek(g)} /></td>
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

function optionValue(v: Json): preact.JSX.Element {
    if (typeof v === "boolean") return <Badge tone={v ? "ok" : "idle"}>{v ? "on" : "off"}</Badge>;
    return <span class="mono">{typeof v === "number" ? v.toLocaleString("en-US") : String(v)}</span>;
}

/** What is in effect, in the words of the form that changes it. */
function Options({ detail }: { detail: QueueDetail }) {
    const o = detail.queue.options, known = new Set([...OPTIONS.map((x) => x.name), "retryPolicy"]);
    const row = (name: string, label: string, unit: string | undefined, help: string, v: Json) => (
        <tr key={name}><td>{label}<div class="dim small mono">{name}</div></td><td class="nowrap">{optionValue(v)}{unit && typeof v === "number" && <span class="dim"> {unit}</span>}</td><td class="wide dim">{help}</td></tr>
    );
    return (
        <>
            <Card title="Retry policy">
                <p>{describePolicy(o.retryPolicy)}</p>
            </Card>
            <Card title="Options in effect">
                <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                    <table>
                        <thead><tr><th>Option</th><th>Value</th><th>Meaning</th></tr></thead>
                        <tbody>
                            <tr><td>Namespace</td><td><bdi>{detail.queue.namespace || "–"}</bdi></td><td class="wide dim">Pops can name a namespace instead of a queue.</td></tr>
                            <tr><td>Task</td><td><bdi>{detail.queue.task || "–"}</bdi></td><td class="wide dim">Likewise, within a namespace.</td></tr>
                            {OPTIONS.filter((x) => o[x.name] !== undefined && o[x.name] !== null).map((x) => row(x.name, x.label, x.unit, x.help, o[x.name]!))}
                            {Object.entries(o).filter(([k, v]) => !known.has(k) && v !== null).map(([k, v]) => row(k, k === "retentionEnabled" ? "Retention is on" : k, undefined, k === "retentionEnabled" ? "Follows from the two retention times." : "", typeof v === "object" ? JSON.stringify(v) : v))}
                        </tbody>
                    </table>
                </div>
                <p class="dim">Created <Time at={detail.queue.createdAt} exact />.</p>
            </Card>
        </>
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
