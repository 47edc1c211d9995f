// One message: what happened to it, what will happen, its payload, and what can be done.
import { useState } from "preact/hooks";
import { query, request, seg, usePoll, type Json } from "../api";
import { ago, clock } from "../format";
import { Action, Card, ConfirmByName, Dialog, Empty, Opener, Problem, Skeleton, State, Time, TimeField, useNow } from "../parts/basic";
import { TimelineList, TimelinePicture } from "../parts/timeline";
import { Tree } from "../parts/tree";
import { go, link } from "../router";
import type { MessageDetail, ScheduledRow, Timeline, TimelineMessage } from "../types";

export function MessagePage({ id }: { id: string }) {
    const found = usePoll<Timeline>("api/v1/messages/timeline" + query({ messageId: id }), 2000);
    const message = found.data?.messages[0];
    return (
        <>
            <div class="page-head"><h1>Message</h1></div>
            {found.error && message && <Problem text={found.error} />}
            {message ? <MessageView message={message} reload={found.reload} /> : found.error ? <Problem text={found.error} /> : <Skeleton rows={6} />}
        </>
    );
}

export const groupName = (g: string) => (g === "__QUEUE_MODE__" ? "Queue mode" : g);

/** "will be retried at 14:03:10, attempt 4 of 29" */
function inWords(m: TimelineMessage, now: number): string[] {
    if (m.status === "SCHEDULED" && m.nextAttemptAt && m.consumerGroups.length === 0)
        return [`Will be delivered at ${clock(m.nextAttemptAt)} (${ago(m.nextAttemptAt, now)}).`];
    if (m.consumerGroups.length === 0) return ["No consumer group has received it yet."];
    return m.consumerGroups.map((g) => {
        const who = groupName(g.consumerGroup);
        const error = g.lastError ?? m.events.filter((e) => e.consumerGroup === g.consumerGroup && e.error).at(-1)?.error ?? "none";
        const tries = g.attempt === 1 ? "at the first attempt" : `after ${g.attempt} attempts`;
        switch (g.status) {
            case "RETRYING":
                return `${who}: will be retried ${g.nextAttemptAt ? `at ${clock(g.nextAttemptAt)} (${ago(g.nextAttemptAt, now)}), ` : "in order, "}attempt ${g.attempt + 1} of ${g.maxAttempts}. Last error: ${error}.`;
            case "FAILED":
                return `${who}: failed ${tries} and is a dead letter. Last error: ${error}.`;
            case "DELIVERED":
                return `${who}: completed ${tries}.`;
            case "LEASED":
                return `${who}: is being processed now, attempt ${g.attempt} of ${g.maxAttempts}.`;
            case "PENDING":
                return `${who}: waits for a consumer, attempt ${g.attempt} of ${g.maxAttempts}.`;
            default:
                return `${who}: ${g.status.toLowerCase()}, attempt ${g.attempt} of ${g.maxAttempts}.`;
        }
    });
}

/** Does something with every waiting delivery of the message: its own one, or a retry for each group that failed. */
async function forWaiting(m: TimelineMessage, act: (id: string) => Promise<unknown>) {
    if (m.status === "SCHEDULED" && m.consumerGroups.length === 0) return void (await act(m.id));
    // A prefix finds ids that producers gave. Ids that the broker made are not stored as text, so those are looked for page by page.
    for (const transactionIdPrefix of [m.transactionId, undefined]) {
        let cursor: string | null | undefined;
        for (let n = 0; n < MOST_PAGES && cursor !== null; n++) {
            const page: { scheduled: ScheduledRow[]; next: string | null } = await request("GET", "api/v1/scheduled" + query({ queue: m.queue, partition: m.partition, transactionIdPrefix, limit: 1000, cursor }));
            const mine = page.scheduled.filter((s) => s.transactionId === m.transactionId);
            for (const s of mine) await act(s.id);
            if (mine.length > 0) return;
            cursor = page.next;
        }
    }
    throw new Error("It does not wait any more.");
}

const MOST_PAGES = 20;

// Fields of the answer that have a place of their own on the page.
const SHOWN = new Set(["id", "transactionId", "partitionId", "queuePath", "queue", "partition", "namespace", "task", "status", "isEncrypted", "traceId", "producerSub", "createdAt",
    "errorMessage", "retryCount", "leaseExpiresAt", "queueConfig", "mode", "consumerGroups", "attempts", "payload", "data", "kind", "scheduledAt", "bytes"]);

const TRACE = ["traceparent", "tracestate"]; // W3C trace context

export function MessageView({ message: m, reload }: { message: TimelineMessage; reload?: () => void }) {
    const now = useNow();
    const path = `api/v1/messages/${seg(m.partitionId)}/${seg(m.transactionId)}`;
    // What waits for its time is not in its partition yet.
    const isScheduled = m.status === "SCHEDULED" && m.consumerGroups.length === 0;
    const detail = usePoll<MessageDetail & { data?: Json }>(isScheduled ? "api/v1/scheduled/" + seg(m.id) : path, 0);
    const [dialog, setDialog] = useState<"reschedule" | "delete" | "dlq">();
    const retrying = m.consumerGroups.some((g) => g.status === "RETRYING" && g.nextAttemptAt);
    const waiting = retrying || m.status === "SCHEDULED";
    const unsettled = m.consumerGroups.filter((g) => g.status !== "FAILED" && g.status !== "DELIVERED");
    const due = m.consumerGroups.find((g) => g.nextAttemptAt)?.nextAttemptAt ?? m.nextAttemptAt;
    const act = (f: () => Promise<unknown>) => async () => { await f(); reload?.(); };
    const close = () => { setDialog(undefined); reload?.(); };
    // The server stores it once more, behind the others of its partition and with an id of its own.
    const again = async () => {
        const r = await request<{ messageId?: string }>("POST", path + "/retry");
        if (r.messageId && r.messageId !== m.id) go(["message", r.messageId]);
        else reload?.();
    };
    const d = detail.data, header = (k: string) => (d as unknown as Record<string, Json> | undefined)?.[k];
    const headers = d ? Object.entries(d as unknown as Record<string, Json>).filter(([k, v]) => !SHOWN.has(k) && !TRACE.includes(k) && v !== null) : [];
    return (
        <>
            <Card title={<span class="mono"><bdi>{m.transactionId}</bdi></span>} side={<State value={m.status} />}>
                <ul class="words">{inWords(m, now).map((w, i) => <li key={i}><bdi>{w}</bdi></li>)}</ul>
                <TimelinePicture events={m.events} now={now} />
                <div class="buttons left">
                    {m.consumerGroups.some((g) => g.status === "FAILED") && <Action op="retry_message" label="Deliver again now" kind="primary" action={again} />}
                    {waiting && <Action op="reschedule" label={retrying ? "Retry now" : "Deliver now"} kind="primary" action={act(() => forWaiting(m, (id) => request("PATCH", "api/v1/scheduled/" + seg(id), { delaySeconds: 0 })))} />}
                    {waiting && <Opener op="reschedule" label="Reschedule" onClick={() => setDialog("reschedule")} />}
                    {waiting && <Action op="cancel_scheduled_one" label={retrying ? "Cancel the retry" : "Cancel"} kind="danger" title={retrying ? "The message becomes a dead letter" : "The message is never delivered"} action={act(() => forWaiting(m, (id) => request("DELETE", "api/v1/scheduled/" + seg(id))))} />}
                    {unsettled.length > 0 && !waiting && <Opener op="move_to_dlq" label="Move to dead letters" onClick={() => setDialog("dlq")} />}
                    {d && !isScheduled && <Opener op="delete_message" label="Delete" kind="danger" onClick={() => setDialog("delete")} />}
                </div>
            </Card>
            <div class="grid2">
                <Card title="Timeline"><TimelineList events={m.events} now={now} /></Card>
                <div class="column"><Card title="Message">
                    <dl class="facts">
                        <dt>Queue</dt><dd><a href={link(["queues", m.queue])}><bdi>{m.queue}</bdi></a></dd>
                        <dt>Partition</dt><dd><bdi>{m.partition}</bdi></dd>
                        <dt>Message id</dt><dd class="mono">{m.id}</dd>
                        <dt>Pushed</dt><dd><Time at={d?.createdAt ?? m.events[0]?.at} exact /></dd>
                        {d?.producerSub && <><dt>Producer</dt><dd><bdi>{d.producerSub}</bdi></dd></>}
                        {d?.traceId && <><dt>Trace id</dt><dd class="mono">{d.traceId}</dd></>}
                        {d?.isEncrypted && <><dt>Storage</dt><dd>encrypted at rest</dd></>}
                        {TRACE.filter((k) => header(k)).map((k) => <><dt key={k}>{k}</dt><dd class="mono"><bdi>{String(header(k))}</bdi></dd></>)}
                    </dl>
                    <h3>Headers</h3>
                    {!d ? <Skeleton rows={1} /> : headers.length === 0 ? <p class="dim">None.</p> : (
                        <dl class="facts">{headers.map(([k, v]) => <><dt key={k}><bdi>{k}</bdi></dt><dd class="mono"><bdi>{typeof v === "string" ? v : JSON.stringify(v)}</bdi></dd></>)}</dl>
                    )}
                    {!isScheduled && <Traces path={`api/v1/traces/${seg(m.partitionId)}/${seg(m.transactionId)}`} />}
                </Card>
                <Card title="Payload">
                {d ? <Tree value={isScheduled ? (d.data ?? null) : d.payload} /> : detail.error ? <Empty>{detail.error}</Empty> : <Skeleton rows={3} />}
                </Card></div>
            </div>
            {dialog === "reschedule" && <Reschedule from={due ?? undefined} onClose={close} move={(body) => forWaiting(m, (id) => request("PATCH", "api/v1/scheduled/" + seg(id), body))} />}
            {dialog === "dlq" && <ToDeadLetters groups={unsettled.map((g) => g.consumerGroup)} onClose={close} move={(consumerGroup, error) => request("POST", path + "/dlq", { consumerGroup, error })} />}
            {dialog === "delete" && <ConfirmByName title="Delete message" verb="Delete the message" name={m.transactionId} onClose={() => setDialog(undefined)}
                text="The message is removed for every consumer group, with its dead letters and traces."
                action={async () => { await request("DELETE", path); go(["queues", m.queue], { tab: "messages" }); }} />}
        </>
    );
}

/** Moves a waiting delivery to another time. */
export function Reschedule({ from, move, onClose }: { from: string | undefined; move: (body: { scheduledAt: string }) => Promise<unknown>; onClose: () => void }) {
    const [time, setTime] = useState(() => (from ? Date.parse(from) : Date.now() + 600e3));
    const now = useNow();
    return (
        <Dialog title="Reschedule" onClose={onClose}>
            <TimeField label="New time" value={time} onChange={setTime} />
            <div class="buttons left">
                {[["in 1 min", 60], ["in 10 min", 600], ["in 1 h", 3600], ["in 1 day", 86400]].map(([label, s]) => <button key={label} type="button" onClick={() => setTime(Math.ceil(Date.now() / 1000 + Number(s)) * 1000)}>{label}</button>)}
            </div>
            <p role="status">{Number.isFinite(time) ? `It will be delivered ${ago(new Date(time).toISOString(), now)}.` : "Enter a date and a time."}</p>
            <div class="buttons"><button type="button" onClick={onClose}>Cancel</button>
                <Action label="Move" kind="primary" disabled={!Number.isFinite(time)} action={async () => { await move({ scheduledAt: new Date(time).toISOString() }); onClose(); }} /></div>
        </Dialog>
    );
}

function ToDeadLetters({ groups, move, onClose }: { groups: string[]; move: (group: string, error: string) => Promise<unknown>; onClose: () => void }) {
    const [group, setGroup] = useState(groups[0] ?? "");
    const [error, setError] = useState("moved by hand");
    return (
        <Dialog title="Move to dead letters" onClose={onClose}>
            <p>The consumer group passes over the message. It can be sent again from the dead letters.</p>
            <label>Consumer group<select value={group} onChange={(e) => setGroup(e.currentTarget.value)}>{groups.map((g) => <option key={g} value={g}>{groupName(g)}</option>)}</select></label>
            <label>Reason<input value={error} maxLength={255} onInput={(e) => setError(e.currentTarget.value)} /></label>
            <div class="buttons"><button type="button" onClick={onClose}>Cancel</button>
                <Action label="Move" kind="danger" disabled={!error} action={async () => { await move(group, error); onClose(); }} /></div>
        </Dialog>
    );
}

/** What clients noted about the message. */
function Traces({ path }: { path: string }) {
    const list = usePoll<{ traces: { id: string; eventType: string; createdAt: string; data: Json }[] }>(path, 0);
    if (!list.data?.traces.length) return null;
    return (
        <>
            <h3>Traces</h3>
            {list.data.traces.map((t) => <div key={t.id}><p class="dim"><bdi>{t.eventType}</bdi> · <Time at={t.createdAt} exact /></p><Tree value={t.data} /></div>)}
        </>
    );
}
