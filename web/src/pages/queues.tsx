// All queues: searched, sorted and paged by the server.
import { useState } from "preact/hooks";
import { query, usePoll } from "../api";
import { count, duration, rate } from "../format";
import { Badge, Card, Empty, Opener, Pager, Problem, SearchBox, Skeleton } from "../parts/basic";
import { Bar, Spark } from "../parts/chart";
import { ConfigureDialog } from "../parts/configure";
import { go, link, setParams, usePlace } from "../router";
import type { QueuePage } from "../types";

const LIMIT = 50;
const COLUMNS: [string, string, string][] = [
    ["name", "Queue", ""], ["partitions", "Partitions", "num"], ["pending", "Pending", "num"],
    ["processing", "In flight", "num"], ["lag", "Oldest pending", "num"], ["dlq", "Dead letters", "num"],
];

export function QueuesPage() {
    const { params } = usePlace();
    const [creating, setCreating] = useState(false);
    const search = params.get("search") ?? "", namespace = params.get("namespace") ?? "";
    const sort = params.get("sort") ?? "pending";
    const order = params.get("order") ?? (sort === "name" ? "asc" : "desc");
    const offset = Number(params.get("offset") ?? 0) || 0;
    const page = usePoll<QueuePage>("api/v1/status/queues" + query({ limit: LIMIT, offset, search, namespace, sort, order, history: true }), 2000);
    const rows = page.data?.queues ?? [];
    const most = Math.max(1, ...rows.map((q) => q.pending));

    return (
        <>
            <div class="page-head">
                <h1>Queues</h1>
                <Opener op="configure" label="New queue" kind="primary" onClick={() => setCreating(true)} />
            </div>
            <div class="filters">
                <SearchBox label="Name contains" value={search} onChange={(v) => setParams({ search: v, offset: undefined })} />
                {namespace && <button type="button" onClick={() => setParams({ namespace: undefined, offset: undefined })}>Namespace {namespace} ×</button>}
                <span class="dim">{page.data?.pagination.total === undefined ? "" : `${count(page.data.pagination.total)} queues`}</span>
            </div>
            <Card>
                <Problem text={page.error} />
                {!page.data ? (page.error ? null : <Skeleton rows={8} />) : rows.length === 0 ? <Empty>{search || namespace ? "No queue matches." : "No queue yet. The first push creates one."}</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead>
                                <tr>
                                    {COLUMNS.map(([id, label, cls]) => (
                                        <th key={id} class={cls} aria-sort={sort === id ? (order === "asc" ? "ascending" : "descending") : "none"}>
                                            <button type="button" class="sort" onClick={() => setParams({ sort: id, order: sort === id && order === "desc" ? "asc" : "desc", offset: undefined })}>
                                                {label}{sort === id ? (order === "asc" ? " ↑" : " ↓") : ""}
                                            </button>
                                        </th>
                                    ))}
                                    <th>Pushed, last hour</th><th class="num">In / out per s</th><th class="num">Groups</th>
                                </tr>
                            </thead>
                            <tbody>
                                {rows.map((q) => (
                                    <tr key={q.id}>
                                        <td><a href={link(["queues", q.name])}><bdi>{q.name}</bdi></a>{q.encryptionEnabled && <> <Badge tone="info">encrypted</Badge></>}{q.namespace && <div><button type="button" class="quiet small" onClick={() => setParams({ namespace: q.namespace, offset: undefined })}><bdi>{q.namespace}</bdi></button></div>}</td>
                                        <td class="num">{count(q.partitions)}</td>
                                        <td class="num"><span class="withbar"><Bar part={q.pending / most} tone="a" />{count(q.pending)}</span></td>
                                        <td class="num">{count(q.processing)}</td>
                                        <td class="num">{q.lagSeconds ? duration(q.lagSeconds) : "–"}</td>
                                        <td class="num">{q.dlq > 0 ? <a class="bad-text" href={link(["dead-letters"], { queue: q.name })}>{count(q.dlq)}</a> : "0"}</td>
                                        <td>{q.history && <Spark values={q.history} label={`messages per 5 minutes of the last hour: ${q.history.join(", ")}`} />}</td>
                                        <td class="num">{rate(q.ingestedPerSecond)} / {rate(q.processedPerSecond)}</td>
                                        <td class="num"><a href={link(["queues", q.name], { tab: "groups" })}>{count(q.groups)}</a></td>
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                )}
                <Pager offset={offset} limit={LIMIT} shown={rows.length} total={page.data?.pagination.total} onMove={(o) => setParams({ offset: o || undefined })} />
            </Card>
            {creating && <ConfigureDialog onClose={() => setCreating(false)} onDone={(name) => go(["queues", name])} />}
        </>
    );
}
