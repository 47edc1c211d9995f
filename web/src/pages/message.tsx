// One message: what happened to it, what will happen, its payload, and what can be done.
import { useMemo } from "preact/hooks";
import { query, request, seg, usePoll } from "../api";
import { absolute, ago, clock, duration } from "../format";
import { Action, Card, Empty, Problem, Skeleton, State, Time, useNow } from "../parts/basic";
import { Tree } from "../parts/tree";
import { go, link } from "../router";
import type { MessageDetail, ScheduledRow, Timeline, TimelineEvent, TimelineMessage } from "../types";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function SearchPage({ text }: { text: string }) {
    const byId = usePoll<Timeline>(UUID.test(text) ? "api/v1/messages/timeline" + query({ messageId: text }) : null, 3000);
    const byName = usePoll<Timeline>(UUID.test(text) && !byId.error ? null : "api/v1/messages/timeline" + query({ correlationId: text }), 3000);
    const found = byId.data ?? byName.data;
    const only = found?.messages.length === 1 ? found.messages[0] : undefined;
    return (
        <>
            <div class="page-head"><h1>Messages for <span class="mono"><bdi>{text}</bdi></span></h1></div>
            {!found ? (byName.error ? <Card><Empty>No message has this id, transaction id or correlation id. ({byName.error})</Empty></Card> : <Skeleton rows={4} />)
                : only ? <MessageView message={only} />
                : (
                    <Card title={`${found.messages.length} messages`} side={<State value={found.status} />}>
                        <table>
                            <thead><tr><th>Transaction id</th><th>Queue</th><th>Partition</th><th>Status</th></tr></thead>
                            <tbody>{found.messages.map((m) => (
                                <tr key={m.id + m.queue}>
                                    <td class="mono"><a href={link(["message", m.id])}><bdi>{m.transactionId}</bdi></a></td>
                                    <td><a href={link(["queues", m.queue])}><bdi>{m.queue}</bdi></a></td>
                                    <td><bdi>{m.partition}</bdi></td>
                                    <td><State value={m.status} /></td>
                                </tr>
                            ))}</tbody>
                        </table>
                    </Card>
                )}
        </>
    );
}

export function MessagePage({ id }: { id: string }) {
    const found = usePoll<Timeline>("api/v1/messages/timeline" + query({ messageId: id }), 2000);
    const message = found.data?.messages[0];
    return (
        <>
            <div class="page-head"><h1>Message</h1></div>
            {message ? <MessageView message={message} reload={found.reload} /> : found.error ? <Problem text={found.error} /> : <Skeleton rows={6} />}
        </>
    );
}

/** "will be retried at 14:03:10, attempt 4 of 29" */
function inWords(m: TimelineMessage, now: number): string[] {
    if (m.scheduledAt && Date.parse(m.scheduledAt) > now && m.consumerGroups.length === 0)
        return [`Will be delivered at ${clock(m.scheduledAt)} (${ago(m.scheduledAt, now)}).`];
    if (m.consumerGroups.length === 0) return ["No consumer group has received it yet."];
    return m.consumerGroups.map((g) => {
        const who = g.consumerGroup === "__QUEUE_MODE__" ? "Queue mode" : g.consumerGroup;
        const tries = g.attempt === 1 ? "at the first attempt" : `after ${g.attempt} attempts`;
        switch (g.status) {
            case "RETRYING":
                return `${who}: will be retried ${g.nextAttemptAt ? `at ${clock(g.nextAttemptAt)} (${ago(g.nextAttemptAt, now)}), ` : ""}attempt ${g.attempt + 1} of ${g.maxAttempts}. Last error: ${g.lastError ?? "none"}.`;
            case "FAILED":
                return `${who}: failed ${tries} and is a dead letter. Last error: ${g.lastError ?? "none"}.`;
            case "DELIVERED":
                return `${who}: completed ${tries}.`;
            default:
                return `${who}: ${g.status.toLowerCase()}, attempt ${g.attempt} of ${g.maxAttempts}.`;
        }
    });
}

/** Does something with every waiting delivery of the message: its own one, or a retry for each group that failed. */
async function forWaiting(m: TimelineMessage, act: (id: string) => Promise<unknown>) {
    const page = await request<{ scheduled: ScheduledRow[] }>("GET", "api/v1/scheduled" + query({ queue: m.queue, partition: m.partition, transactionIdPrefix: m.transactionId, limit: 100 }));
    const mine = page.scheduled.filter((s) => s.transactionId === m.transactionId);
    if (mine.length === 0) throw new Error("It does not wait any more.");
    for (const s of mine) await act(s.id);
}

function MessageView({ message: m, reload }: { message: TimelineMessage; reload?: () => void }) {
    const now = useNow();
    const detail = usePoll<MessageDetail>(`api/v1/messages/${seg(m.partitionId)}/${seg(m.transactionId)}`, 0);
    const path = `api/v1/messages/${seg(m.partitionId)}/${seg(m.transactionId)}`;
    const retrying = m.consumerGroups.some((g) => g.status === "RETRYING");
    const waiting = retrying || m.status === "SCHEDULED";
    const act = (f: () => Promise<unknown>) => async () => { await f(); reload?.(); };
    return (
        <>
            <Card title={<span class="mono"><bdi>{m.transactionId}</bdi></span>} side={<State value={m.status} />}>
                <ul class="words">{inWords(m, now).map((w, i) => <li key={i}><bdi>{w}</bdi></li>)}</ul>
                <dl class="facts">
                    <dt>Queue</dt><dd><a href={link(["queues", m.queue])}><bdi>{m.queue}</bdi></a></dd>
                    <dt>Partition</dt><dd><bdi>{m.partition}</bdi></dd>
                    <dt>Message id</dt><dd class="mono">{m.id}</dd>
                    <dt>Pushed</dt><dd><Time at={detail.data?.createdAt ?? m.events[0]?.at} exact /></dd>
                    {detail.data?.producerSub && <><dt>Producer</dt><dd><bdi>{detail.data.producerSub}</bdi></dd></>}
                    {detail.data?.traceId && <><dt>Trace id</dt><dd class="mono">{detail.data.traceId}</dd></>}
                </dl>
                <div class="buttons left">
                    {m.consumerGroups.some((g) => g.status === "FAILED") && <Action label="Deliver again now" kind="primary" action={act(() => request("POST", path + "/retry"))} />}
                    {waiting && <Action label={retrying ? "Retry now" : "Deliver now"} kind="primary" action={act(() => forWaiting(m, (id) => request("PATCH", "api/v1/scheduled/" + seg(id), { delaySeconds: 0 })))} />}
                    {waiting && <Action label={retrying ? "Cancel the retry" : "Cancel"} kind="danger" action={act(() => forWaiting(m, (id) => request("DELETE", "api/v1/scheduled/" + seg(id))))} />}
                    {m.consumerGroups.filter((g) => g.status !== "FAILED" && g.status !== "DELIVERED").map((g) => (
                        <Action key={g.consumerGroup} label={`Move to dead letters (${g.consumerGroup})`} action={act(() => request("POST", path + "/dlq", { consumerGroup: g.consumerGroup, error: "moved by hand" }))} />
                    ))}
                    <Action label="Delete" kind="danger" action={async () => { await request("DELETE", path); go(["queues", m.queue], { tab: "messages" }); }} />
                </div>
            </Card>
            <Card title="Timeline"><TimelinePicture events={m.events} now={now} /></Card>
            <Card title="Payload">
                {detail.data ? <Tree value={detail.data.payload} /> : detail.error ? <Empty>{detail.error}</Empty> : <Skeleton rows={3} />}
            </Card>
        </>
    );
}

const LABELS: Record<string, [string, string]> = {
    pushed: ["Pushed", "idle"], scheduled: ["Scheduled", "info"], delivered: ["Delivered", "info"], completed: ["Completed", "ok"], failed: ["Failed", "bad"],
    retryScheduled: ["Retry scheduled", "warn"], redelivery: ["Delivered again in order", "warn"], deadLettered: ["Dead letter", "bad"],
    redriven: ["Sent again (redrive)", "info"], cancelled: ["Cancelled", "idle"], expired: ["Lease expired", "warn"],
};

function TimelinePicture({ events, now }: { events: TimelineEvent[]; now: number }) {
    const next = useMemo(() => events.filter((e) => e.nextAttemptAt).at(-1), [events]);
    const rows = [...events];
    if (next?.nextAttemptAt && Date.parse(next.nextAttemptAt) > now) rows.push({ at: next.nextAttemptAt, event: "next", ...(next.consumerGroup ? { consumerGroup: next.consumerGroup } : {}), attempt: (next.attempt ?? 0) + 1 });
    return (
        <ol class="timeline">
            {rows.map((e, i) => {
                const [label, tone] = e.event === "next" ? ["Next attempt", "info"] : (LABELS[e.event] ?? [e.event, "idle"]);
                const before = rows[i - 1];
                const gap = before ? (Date.parse(e.at) - Date.parse(before.at)) / 1000 : 0;
                return (
                    <li key={i} class={tone + (e.event === "next" ? " future" : "")}>
                        <span class="when" title={absolute(e.at)}>{clock(e.at)}<br /><span class="dim">{e.event === "next" ? ago(e.at, now) : before ? "+" + duration(gap) : ""}</span></span>
                        <span class="dot" aria-hidden="true" />
                        <span class="event">
                            <b>{label}</b>
                            {e.attempt !== undefined && e.attempt > 0 && <span class="dim"> attempt {e.attempt}</span>}
                            {e.consumerGroup && <span class="dim"> · <bdi>{e.consumerGroup}</bdi></span>}
                            {e.worker && <span class="dim"> · <bdi>{e.worker}</bdi></span>}
                            {e.error && <div class="error-text"><bdi>{e.errorCode ? `${e.errorCode}: ` : ""}{e.error}</bdi></div>}
                        </span>
                    </li>
                );
            })}
        </ol>
    );
}
