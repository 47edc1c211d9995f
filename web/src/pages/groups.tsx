// Consumer groups of all queues, and one group on one queue with its partitions and owners.
import { useState } from "preact/hooks";
import { query, request, seg, useKept, usePoll } from "../api";
import { count, duration, plural } from "../format";
import { Badge, Card, ConfirmByName, Empty, Opener, Pager, Problem, SearchBox, Skeleton, State, Tabs, Tile, Time } from "../parts/basic";
import { OwnerChanges } from "../parts/changes";
import { go, link, setParams, usePlace } from "../router";
import type { GroupPartitions, GroupRow } from "../types";
import { SeekDialog } from "../parts/seek";
import { groupName } from "./message";

const PAGE = 50;

export function GroupsPage({ path }: { path: string[] }) {
    return path[0] !== undefined && path[1] !== undefined ? <GroupPage group={path[0]} queue={path[1]} /> : <AllGroups only={path[0]} />;
}

function AllGroups({ only }: { only: string | undefined }) {
    const { params } = usePlace();
    const search = params.get("search") ?? "", offset = Number(params.get("offset") ?? 0) || 0, sort = params.get("sort") === "name" ? "" : "lag";
    const list = usePoll<GroupRow[]>("api/v1/consumer-groups" + query({ consumerGroup: only, search, sort, offset, limit: PAGE }), 2000);
    const rows = useKept(list.data);
    return (
        <>
            <div class="page-head"><h1>Consumer groups</h1></div>
            <div class="filters">
                <SearchBox label="Group or queue contains" value={search} onChange={(v) => setParams({ search: v, offset: undefined })} />
                <select aria-label="Order" value={sort || "name"} onChange={(e) => setParams({ sort: e.currentTarget.value === "name" ? "name" : undefined, offset: undefined })}>
                    <option value="lag">furthest behind first</option><option value="name">by name</option>
                </select>
                {only !== undefined && <button type="button" onClick={() => go(["groups"])}>Group <bdi>{groupName(only)}</bdi> ×</button>}
            </div>
            <Card>
                <Problem text={list.error} />
                {!rows ? (list.error ? null : <Skeleton rows={6} />) : rows.length === 0 ? <Empty>{search || offset ? "No group matches." : "No consumer group. The first pop of a group creates it."}</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Group</th><th>Queue</th><th>State</th><th class="num">Behind</th><th class="num">Oldest</th><th class="num">Partitions behind</th></tr></thead>
                            <tbody>
                                {rows.map((g) => (
                                    <tr key={g.name + "\n" + g.queueName}>
                                        <td><a href={link(["groups", g.name, g.queueName])}><bdi>{groupName(g.name)}</bdi></a></td>
                                        <td><a href={link(["queues", g.queueName])}><bdi>{g.queueName}</bdi></a></td>
                                        <td><State value={g.state} /></td>
                                        <td class="num">{plural(g.totalLag, "message")}</td>
                                        <td class="num">{g.maxTimeLag ? duration(g.maxTimeLag) : "–"}</td>
                                        <td class="num">{count(g.partitionsWithLag)} of {count(g.members)}</td>
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                )}
                <Pager offset={offset} limit={PAGE} shown={rows?.length ?? 0} onMove={(o) => setParams({ offset: o || undefined })} />
            </Card>
        </>
    );
}

interface Owner { partition: string; owner: string | null; epoch: number; since: string | null; expiresAt: string | null; expired: boolean; wantedBy: string | null; checkpoint: number | null; checkpointAt: string | null; lag: number }

function GroupPage({ group, queue }: { group: string; queue: string }) {
    const list = usePoll<GroupRow[]>("api/v1/consumer-groups" + query({ queue, consumerGroup: group }), 2000);
    const leases = usePoll<GroupPartitions>(partitionsPath(group, queue) + query({ limit: 0 }), 2000);
    // Only queues with a fixed number of partitions have owners.
    const owned = usePoll<{ groups: unknown[] }>("api/v1/processors" + query({ queue, consumerGroup: group }), 15000);
    const { params } = usePlace();
    const hasOwners = (owned.data?.groups.length ?? 0) > 0;
    const tab = params.get("tab") === "owners" && (hasOwners || !owned.data) ? "owners" : "partitions";
    const [dialog, setDialog] = useState<"seek" | "delete">();
    const row = list.data?.[0];
    return (
        <>
            <div class="page-head">
                <h1><a class="crumb" href={link(["groups"])}>Consumer groups</a> / <bdi>{groupName(group)}</bdi> on <a href={link(["queues", queue])}><bdi>{queue}</bdi></a></h1>
                <div class="buttons">
                    <Opener op="seek_group" label="Seek" disabled={!row} onClick={() => setDialog("seek")} />
                    <Opener op="delete_group_on_queue" label="Delete" kind="danger" onClick={() => setDialog("delete")} />
                </div>
            </div>
            <Problem text={leases.error ?? list.error} />
            <div class="tiles">
                <Tile label="Behind" value={count(row?.totalLag)} unit="messages" />
                <Tile label="Oldest" value={row?.maxTimeLag ? duration(row.maxTimeLag) : "–"} />
                <Tile label="Partitions behind" value={count(row?.partitionsWithLag)} note={row ? `of ${count(row.members)}` : undefined} />
                <Tile label="Active leases" value={count(leases.data?.leases)} note={leases.data ? `on ${plural(leases.data.pagination.total, "partition")}` : undefined} />
            </div>
            {hasOwners && <Tabs value={tab} all={[["partitions", "Partitions"], ["owners", "Processors"]]} onChange={(t) => setParams({ tab: t })} />}
            {tab === "owners" ? <Owners group={group} queue={queue} /> : <Partitions group={group} queue={queue} />}
            {dialog === "seek" && row && <SeekDialog group={row} onClose={() => { setDialog(undefined); list.reload(); leases.reload(); }} />}
            {dialog === "delete" && <ConfirmByName title="Delete consumer group" verb="Delete the group" name={group} onClose={() => setDialog(undefined)}
                text={<>The group forgets its position on queue <b><bdi>{queue}</bdi></b>. If it pops again it starts as a new group.</>}
                action={async () => { await request("DELETE", `api/v1/consumer-groups/${seg(group)}/queues/${seg(queue)}`); go(["groups"]); }} />}
        </>
    );
}

const partitionsPath = (group: string, queue: string) => `api/v1/consumer-groups/${seg(group)}/queues/${seg(queue)}/partitions`;

function Partitions({ group, queue }: { group: string; queue: string }) {
    const [sort, setSort] = useState("lag");
    const [search, setSearch] = useState("");
    const [offset, setOffset] = useState(0);
    const list = usePoll<GroupPartitions>(partitionsPath(group, queue) + query({ limit: PAGE, offset, sort, search }), 2000);
    const page = useKept(list.data), rows = page?.partitions ?? [];
    return (
        <Card title="Partitions" side={
            <>
                <SearchBox label="Name contains" value={search} onChange={(v) => { setSearch(v); setOffset(0); }} />
                <select aria-label="Order" value={sort} onChange={(e) => { setSort(e.currentTarget.value); setOffset(0); }}>
                    <option value="lag">furthest behind first</option><option value="age">longest wait first</option><option value="name">by name</option>
                </select>
            </>
        }>
            <Problem text={list.error} />
            {!page ? (list.error ? null : <Skeleton rows={6} />) : rows.length === 0 ? <Empty>{search ? "No partition matches." : "The group has received nothing from this queue."}</Empty> : (
                <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                    <table>
                        <thead><tr><th>Partition</th><th class="num">Behind</th><th class="num">Oldest</th><th class="num">Cursor</th><th>Lease</th><th class="num">Consumed</th><th>Last</th></tr></thead>
                        <tbody>{rows.map((p) => (
                            <tr key={p.partition}>
                                <td><bdi>{p.partition}</bdi></td><td class="num">{count(p.lag)}</td><td class="num">{p.lagSeconds ? duration(p.lagSeconds) : "–"}</td><td class="num">{count(p.cursor)}</td>
                                <td>{p.leaseExpiresAt ? <><Badge tone="info">leased</Badge> <span title={p.leaseId ?? ""}>ends <Time at={p.leaseExpiresAt} /></span></> : <span class="dim">free</span>}</td>
                                <td class="num">{count(p.totalConsumed)}</td><td><Time at={p.lastConsumedAt} /></td>
                            </tr>
                        ))}</tbody>
                    </table>
                </div>
            )}
            <Pager offset={offset} limit={PAGE} shown={rows.length} total={page?.pagination.total} onMove={setOffset} />
        </Card>
    );
}

function Owners({ group, queue }: { group: string; queue: string }) {
    const list = usePoll<{ owners: Owner[] }>(`api/v1/consumer-groups/${seg(group)}/queues/${seg(queue)}/owners`, 2000);
    return (
        <>
            <OwnerChanges group={group} queue={queue} />
            <Card title="Owners of partitions">
                <Problem text={list.error} />
                {!list.data ? (list.error ? null : <Skeleton rows={6} />) : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Partition</th><th>Owner</th><th class="num">Epoch</th><th>Since</th><th>Expires</th><th class="num">Checkpoint</th><th>Saved</th><th class="num">Behind</th></tr></thead>
                            <tbody>{list.data.owners.map((o) => (
                                <tr key={o.partition}><td><bdi>{o.partition}</bdi></td>
                                    <td>{o.owner ? <bdi>{o.owner}</bdi> : <span class="dim">none</span>} {o.expired && o.owner && <Badge tone="warn">expired</Badge>} {o.wantedBy && <Badge tone="info">wanted by {o.wantedBy}</Badge>}</td>
                                    <td class="num">{o.epoch}</td><td><Time at={o.since} /></td><td><Time at={o.expiresAt} /></td><td class="num">{count(o.checkpoint)}</td><td>{o.checkpointAt ? <Time at={o.checkpointAt} /> : "–"}</td><td class="num">{count(o.lag)}</td></tr>
                            ))}</tbody>
                        </table>
                    </div>
                )}
            </Card>
        </>
    );
}
