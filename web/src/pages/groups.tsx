// Consumer groups of all queues, and one group on one queue with its partitions and owners.
import { useState } from "preact/hooks";
import { query, request, seg, usePoll } from "../api";
import { count, duration, plural } from "../format";
import { Badge, Card, ConfirmByName, Empty, Opener, Problem, SearchBox, Skeleton, State, Tabs, Tile, Time } from "../parts/basic";
import { go, link, setParams, usePlace } from "../router";
import type { GroupRow } from "../types";
import { SeekDialog } from "../parts/seek";

const SHOWN = 200;

export function GroupsPage({ path }: { path: string[] }) {
    return path[0] !== undefined && path[1] !== undefined ? <GroupPage group={path[0]} queue={path[1]} /> : <AllGroups only={path[0]} />;
}

function AllGroups({ only }: { only: string | undefined }) {
    const { params } = usePlace();
    const search = params.get("search") ?? "";
    const list = usePoll<GroupRow[]>("api/v1/consumer-groups" + query({ sort: "lag", limit: 5000 }), 5000);
    const rows = (list.data ?? []).filter((g) => (only === undefined || g.name === only) && (g.name.includes(search) || g.queueName.includes(search)))
        .sort((a, b) => b.maxTimeLag - a.maxTimeLag || b.totalLag - a.totalLag);
    return (
        <>
            <div class="page-head"><h1>Consumer groups</h1></div>
            <div class="filters"><SearchBox label="Group or queue contains" value={search} onChange={(v) => setParams({ search: v })} /></div>
            <Card>
                <Problem text={list.error} />
                {!list.data ? <Skeleton rows={6} /> : rows.length === 0 ? <Empty>No consumer group.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Group</th><th>Queue</th><th>State</th><th class="num">Behind</th><th class="num">Oldest</th><th class="num">Partitions behind</th></tr></thead>
                            <tbody>
                                {rows.slice(0, SHOWN).map((g) => (
                                    <tr key={g.name + "\n" + g.queueName}>
                                        <td><a href={link(["groups", g.name, g.queueName])}><bdi>{g.name === "__QUEUE_MODE__" ? "(queue mode)" : g.name}</bdi></a></td>
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
                {rows.length > SHOWN && <p class="dim">The {SHOWN} that are furthest behind, of {count(rows.length)}. Search to narrow the list.</p>}
            </Card>
        </>
    );
}

interface PartitionOfGroup { partition: string; workerId: string | null; lastConsumedAt: string | null; totalConsumed: number; offsetLag: number; timeLagSeconds: number; leaseActive: boolean }
interface Owner { partition: string; owner: string | null; epoch: number; since: string | null; expiresAt: string | null; expired: boolean; checkpoint: number | null; checkpointAt: string | null; lag: number }

function GroupPage({ group, queue }: { group: string; queue: string }) {
    const detail = usePoll<Record<string, { partitions: PartitionOfGroup[] }>>("api/v1/consumer-groups/" + seg(group), 5000);
    const list = usePoll<GroupRow[]>("api/v1/consumer-groups" + query({ queue }), 5000);
    const { params } = usePlace();
    const tab = params.get("tab") ?? "partitions";
    const owners = usePoll<{ owners: Owner[] }>(tab === "owners" ? `api/v1/consumer-groups/${seg(group)}/queues/${seg(queue)}/owners` : null, 5000);
    const [dialog, setDialog] = useState<"seek" | "delete">();
    const row = list.data?.find((g) => g.name === group && g.queueName === queue);
    const parts = detail.data?.[queue]?.partitions;
    const rows = [...(parts ?? [])].sort((a, b) => b.offsetLag - a.offsetLag);
    return (
        <>
            <div class="page-head">
                <h1><a class="crumb" href={link(["groups"])}>Consumer groups</a> / <bdi>{group}</bdi> on <a href={link(["queues", queue])}><bdi>{queue}</bdi></a></h1>
                <div class="buttons">
                    <Opener op="seek_group" label="Seek" disabled={!row} onClick={() => setDialog("seek")} />
                    <Opener op="delete_group_on_queue" label="Delete" kind="danger" onClick={() => setDialog("delete")} />
                </div>
            </div>
            <Problem text={detail.error} />
            <div class="tiles">
                <Tile label="Behind" value={count(row?.totalLag)} unit="messages" />
                <Tile label="Oldest" value={row?.maxTimeLag ? duration(row.maxTimeLag) : "–"} />
                <Tile label="Partitions behind" value={count(row?.partitionsWithLag)} note={row ? `of ${count(row.members)}` : undefined} />
                <Tile label="Active leases" value={parts ? count(parts.filter((p) => p.leaseActive).length) : "–"} />
            </div>
            <Tabs value={tab} all={[["partitions", "Partitions"], ["owners", "Processors"]]} onChange={(t) => setParams({ tab: t })} />
            {tab === "owners" && !owners.data && <Card>{owners.error ? <Empty>Processors own partitions only on queues with a fixed number of them. ({owners.error})</Empty> : <Skeleton rows={4} />}</Card>}
            {tab === "owners" && owners.data && (
                <Card title="Owners of partitions">
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Partition</th><th>Owner</th><th class="num">Epoch</th><th>Since</th><th>Expires</th><th class="num">Checkpoint</th><th class="num">Behind</th></tr></thead>
                            <tbody>{owners.data.owners.map((o) => (
                                <tr key={o.partition}><td><bdi>{o.partition}</bdi></td><td>{o.owner ? <bdi>{o.owner}</bdi> : <span class="dim">none</span>} {o.expired && o.owner && <Badge tone="warn">expired</Badge>}</td>
                                    <td class="num">{o.epoch}</td><td><Time at={o.since} /></td><td><Time at={o.expiresAt} /></td><td class="num">{o.checkpoint ?? "–"}</td><td class="num">{count(o.lag)}</td></tr>
                            ))}</tbody>
                        </table>
                    </div>
                </Card>
            )}
            {tab === "partitions" && <Card title="Partitions">
                {!parts ? (detail.error ? null : <Skeleton rows={6} />) : rows.length === 0 ? <Empty>No partition.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Partition</th><th class="num">Behind</th><th class="num">Oldest</th><th>Lease</th><th class="num">Consumed</th><th>Last</th></tr></thead>
                            <tbody>{rows.slice(0, SHOWN).map((p) => (
                                <tr key={p.partition}>
                                    <td><bdi>{p.partition}</bdi></td><td class="num">{count(p.offsetLag)}</td><td class="num">{p.timeLagSeconds ? duration(p.timeLagSeconds) : "–"}</td>
                                    <td>{p.leaseActive ? <><Badge tone="info">leased</Badge> <bdi class="dim">{p.workerId ?? ""}</bdi></> : <span class="dim">free</span>}</td>
                                    <td class="num">{count(p.totalConsumed)}</td><td><Time at={p.lastConsumedAt} /></td>
                                </tr>
                            ))}</tbody>
                        </table>
                    </div>
                )}
                {rows.length > SHOWN && <p class="dim">The {SHOWN} that are furthest behind, of {count(rows.length)}.</p>}
            </Card>}
            {dialog === "seek" && row && <SeekDialog group={row} onClose={() => { setDialog(undefined); list.reload(); detail.reload(); }} />}
            {dialog === "delete" && <ConfirmByName title="Delete consumer group" verb="Delete the group" name={group} onClose={() => setDialog(undefined)}
                text={<>The group forgets its position on queue <b><bdi>{queue}</bdi></b>. If it pops again it starts as a new group.</>}
                action={async () => { await request("DELETE", `api/v1/consumer-groups/${seg(group)}/queues/${seg(queue)}`); go(["groups"]); }} />}
        </>
    );
}
