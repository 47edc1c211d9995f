// What the search box found: by message id, transaction id or correlation id, else by text in the newest messages.
import { useState } from "preact/hooks";
import { query, usePoll } from "../api";
import { count } from "../format";
import { Card, Empty, Problem, Skeleton, State, Time } from "../parts/basic";
import { link, setParams, usePlace } from "../router";
import type { MessageRow, Timeline } from "../types";
import { MessageView } from "./message";

interface Found { by: string | null; timeline: Timeline | null; note: string | null }

export function SearchPage({ text }: { text: string }) {
    const { params } = usePlace();
    const queue = params.get("queue") ?? "", partition = params.get("partition") ?? "";
    const found = usePoll<Found>("api/v1/messages/find" + query({ id: text, queue, partition }), 3000);
    const timeline = found.data?.timeline, messages = timeline?.messages ?? [];
    return (
        <>
            <div class="page-head"><h1>Messages for <span class="mono"><bdi>{text}</bdi></span></h1></div>
            <Problem text={found.error} />
            {!found.data ? (found.error ? null : <Skeleton rows={4} />)
                : !timeline ? <ByText text={text} queue={queue} note={found.data.note} />
                : messages.length === 1 ? <MessageView message={messages[0]!} reload={found.reload} />
                : (
                    <Card title={`${count(messages.length)} messages`} side={<State value={timeline.status} />}>
                        <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                            <thead><tr><th>Transaction id</th><th>Queue</th><th>Partition</th><th>Status</th></tr></thead>
                            <tbody>{messages.map((m) => (
                                <tr key={m.id + m.queue}>
                                    <td class="mono"><a href={link(["message", m.id])}><bdi>{m.transactionId}</bdi></a></td>
                                    <td><a href={link(["queues", m.queue])}><bdi>{m.queue}</bdi></a></td>
                                    <td><bdi>{m.partition}</bdi></td>
                                    <td><State value={m.status} /></td>
                                </tr>
                            ))}</tbody>
                        </table></div>
                    </Card>
                )}
        </>
    );
}

/** No id: text in the payloads of the newest messages. */
function ByText({ text, queue, note }: { text: string; queue: string; note: string | null }) {
    const [newest, setNewest] = useState(1000);
    const page = usePoll<{ messages: MessageRow[]; searched: number }>("api/v1/messages" + query({ contains: text, search: newest, limit: 100, queue, from: "1970-01-01T00:00:00Z" }), 0);
    const rows = page.data?.messages ?? [];
    return (
        <Card title="Messages that contain the text" side={
            <>
                <input class="search" aria-label="Only this queue" placeholder="only this queue" value={queue} spellcheck={false} onChange={(e) => setParams({ queue: e.currentTarget.value.trim() || undefined, partition: undefined })} />
                <select aria-label="How many messages are searched" value={newest} onChange={(e) => setNewest(Number(e.currentTarget.value))}>
                    {[1000, 3000, 10000].map((n) => <option key={n} value={n}>newest {count(n)}</option>)}
                </select>
            </>
        }>
            <p class="dim">No message has this id, transaction id or correlation id. {note && <bdi>({note})</bdi>}{page.data && ` Searched the payloads of the newest ${count(page.data.searched)} messages.`}</p>
            <Problem text={page.error} />
            {!page.data ? (page.error ? null : <Skeleton rows={4} />) : rows.length === 0 ? <Empty>No payload contains it.</Empty> : (
                <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                    <thead><tr><th>Transaction id</th><th>Queue</th><th>Partition</th><th>Status</th><th>Pushed</th></tr></thead>
                    <tbody>{rows.map((m) => (
                        <tr key={m.id}>
                            <td class="mono"><a href={link(["message", m.id])}><bdi>{m.transactionId}</bdi></a></td>
                            <td><a href={link(["queues", m.queue])}><bdi>{m.queue}</bdi></a></td>
                            <td><bdi>{m.partition}</bdi></td>
                            <td><State value={m.status} /></td>
                            <td><Time at={m.createdAt} exact /></td>
                        </tr>
                    ))}</tbody>
                </table></div>
            )}
        </Card>
    );
}
