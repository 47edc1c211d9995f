// Brokers, PostgreSQL, the file buffer and maintenance switches.
import { useMemo } from "preact/hooks";
import { query, request, usePoll, type Json } from "../api";
import { bytes, count, duration, millis } from "../format";
import { may } from "../identity";
import { Action, Badge, Card, Empty, Problem, Skeleton, Tile, Time } from "../parts/basic";
import { Chart, type Line } from "../parts/chart";
import { RangePicker, useRange } from "../parts/range";
import type { Status } from "../types";

interface Holder { kind: string; pid: number | null; name: string | null; user: string | null; state: string | null; startedAt: string | null; ageSeconds: number | null; xminAge: number | null; query: string | null }
interface Peer { hostname: string; port: number; resolved: boolean; is_self: boolean; resolved_ip?: string; learned_server_id?: string }
interface Shared { enabled: boolean; server_id: string; transport?: { peers: Peer[] }; server_health: { servers_tracked: number; servers_alive: number; servers_dead: number; restarts_detected: number }; queue_config_cache: { hit_rate: number } }
interface Batches { batchEfficiency: { push: number | null; pop: number | null; ack: number | null } }
interface Metrics { uptime: number; requests: { total: number; rate: number }; database: { poolSize: number; idleConnections: number; waitingRequests: number }; memory: { rss: number }; cpu: { user: number; system: number } }
interface Buffers { pending: number; failed: number; dbHealthy: boolean }
interface Pg {
    database: string;
    databaseCache: { cacheHitRatio: number };
    tableSizes?: { table: string; totalSize?: string; rowEstimate?: number }[];
    activeQueries?: { pid: number; state: string; duration?: string; durationSeconds?: number; query: string }[];
    [key: string]: Json | undefined | object;
}
interface Worker { hostname: string; workerId: number; avgEventLoopLagMs: number; maxEventLoopLagMs: number; freeSlots: number; dbConnections: number; jobQueueSize: number; messagesProcessed: number; lastSeen: string }

export function SystemPage() {
    const range = useRange();
    const metrics = usePoll<Metrics>("metrics", 2000);
    const buffers = usePoll<Buffers>("api/v1/status/buffers", 2000);
    const status = usePoll<Status>("api/v1/status" + query({ from: range.from, to: range.to }), 10000);
    const pg = usePoll<Pg>("api/v1/analytics/postgres-stats", 10000);
    const shared = usePoll<Shared>(may("shared_state") ? "api/v1/system/shared-state" : null, 5000);
    const batches = (status.data?.messages as unknown as Batches | undefined)?.batchEfficiency;
    const points = useMemo(() => [...(status.data?.throughput ?? [])].reverse(), [status.data]);
    const times = useMemo(() => points.map((p) => Date.parse(p.timestamp) / 1000), [points]);
    const cpu = useMemo<Line[]>(() => [
        { label: "user", color: "a", values: points.map((p) => p.queenCpuUserPct), fill: true },
        { label: "system", color: "c", values: points.map((p) => p.queenCpuSysPct) },
    ], [points]);
    const loop = useMemo<Line[]>(() => [
        { label: "mean", color: "a", values: points.map((p) => p.avgEventLoopLagMs) },
        { label: "maximum", color: "c", values: points.map((p) => p.maxEventLoopLagMs) },
    ], [points]);
    const pool = useMemo<Line[]>(() => [
        { label: "active", color: "a", values: points.map((p) => p.dbPoolActive), fill: true },
        { label: "open", color: "b", values: points.map((p) => p.dbPoolSize) },
    ], [points]);
    const m = metrics.data;
    const workers = (status.data?.workers ?? []) as unknown as Worker[];
    return (
        <>
            <div class="page-head"><h1>System</h1><RangePicker /></div>
            <Problem text={metrics.error} />
            <div class="tiles">
                <Tile label="Uptime" value={duration(m?.uptime)} />
                <Tile label="Memory" value={bytes(m?.memory.rss)} note="of this broker" />
                <Tile label="Requests" value={count(m?.requests.total)} note="since the start" />
                <Tile label="Database connections" value={m ? `${m.database.poolSize - m.database.idleConnections} / ${m.database.poolSize}` : "–"} note="busy / open" />
                <Tile label="Waiting for a connection" value={count(m?.database.waitingRequests)} tone={m && m.database.waitingRequests > 0 ? "warn" : undefined} />
                <Tile label="File buffer" value={count(buffers.data?.pending)} unit="messages" tone={buffers.data && buffers.data.failed > 0 ? "bad" : undefined} note={buffers.data ? `${count(buffers.data.failed)} could not be stored` : undefined} />
            </div>
            <div class="grid2">
                <Card title="CPU of the broker"><Chart label="CPU in percent of a core" times={times} lines={cpu} format={(n) => n.toFixed(n < 10 ? 1 : 0) + " %"} range={range.seconds} /></Card>
                <Card title="Event loop delay"><Chart label="Event loop delay" times={times} lines={loop} format={millis} range={range.seconds} /></Card>
                <Card title="Database connections"><Chart label="Database connections" times={times} lines={pool} format={(n) => n.toFixed(n % 1 ? 1 : 0)} range={range.seconds} /></Card>
                {may("maintenance") && <Maintenance />}
            </div>
            <div class="grid2">
                <Card title="Brokers">
                    <dl class="facts">
                        <dt>This broker</dt><dd><bdi>{shared.data?.server_id ?? "–"}</bdi></dd>
                        <dt>Peers</dt><dd>{!shared.data ? "–" : !shared.data.enabled ? "none configured" : <>{count(shared.data.server_health.servers_alive)} alive{shared.data.server_health.servers_dead > 0 && <> <Badge tone="bad">{count(shared.data.server_health.servers_dead)} silent</Badge></>}, {count(shared.data.server_health.restarts_detected)} restarts seen</>}</dd>
                        {shared.data?.transport?.peers.filter((p) => !p.is_self).map((p) => (
                            <><dt key={p.hostname + p.port}><bdi>{p.hostname}:{p.port}</bdi></dt>
                                <dd>{p.learned_server_id ? <><Badge tone="ok">connected</Badge> <bdi class="dim">{p.learned_server_id}</bdi></> : p.resolved ? <Badge tone="warn">no answer yet</Badge> : <Badge tone="bad">name not found</Badge>}</dd></>
                        ))}
                        <dt>Queue options from the cache</dt><dd>{shared.data ? (shared.data.queue_config_cache.hit_rate * 100).toFixed(1) + " %" : "–"}</dd>
                    </dl>
                </Card>
                <Card title="Messages per request">
                    <dl class="facts">{(["push", "pop", "ack"] as const).map((k) => <><dt key={k}>{k}</dt><dd>{batches?.[k]?.toFixed(1) ?? "–"}</dd></>)}</dl>
                </Card>
            </div>
            <Card title="Workers">
                {workers.length === 0 ? <Empty>Nothing recorded yet. Brokers report once a minute.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>Host</th><th class="num">Worker</th><th class="num">Loop delay</th><th class="num">Maximum</th><th class="num">Connections</th><th class="num">Waiting calls</th><th class="num">Messages</th><th>Last report</th></tr></thead>
                        <tbody>{workers.map((w) => (
                            <tr key={w.hostname + w.workerId}><td><bdi>{w.hostname}</bdi></td><td class="num">{w.workerId}</td><td class="num">{millis(w.avgEventLoopLagMs)}</td><td class="num">{millis(w.maxEventLoopLagMs)}</td>
                                <td class="num">{w.dbConnections}</td><td class="num">{w.jobQueueSize}</td><td class="num">{count(w.messagesProcessed)}</td><td><Time at={w.lastSeen} /></td></tr>
                        ))}</tbody>
                    </table></div>
                )}
            </Card>
            <Postgres pg={pg.data} error={pg.error} />
        </>
    );
}

function Maintenance() {
    const push = usePoll<Record<string, Json>>("api/v1/system/maintenance", 5000);
    const pop = usePoll<Record<string, Json>>("api/v1/system/maintenance/pop", 5000);
    const on = (d: Record<string, Json> | undefined, ...names: string[]) => names.some((n) => d?.[n] === true);
    const pushOn = on(push.data, "maintenanceMode"), popOn = on(pop.data, "popMaintenanceMode", "maintenanceMode");
    return (
        <Card title="Maintenance">
            <div class="switches">
                <div><b>Pushes</b> {pushOn ? <Badge tone="warn">go to the file buffer</Badge> : <Badge tone="ok">normal</Badge>}
                    <Action op="set_maintenance" label={pushOn ? "End" : "Buffer pushes"} action={async () => { await request("POST", "api/v1/system/maintenance", { enabled: !pushOn }); push.reload(); }} /></div>
                <div><b>Pops</b> {popOn ? <Badge tone="warn">answer empty</Badge> : <Badge tone="ok">normal</Badge>}
                    <Action op="set_pop_maintenance" label={popOn ? "End" : "Stop deliveries"} action={async () => { await request("POST", "api/v1/system/maintenance/pop", { enabled: !popOn }); pop.reload(); }} /></div>
            </div>
            <p class="dim">For work on the database: pushes are stored on the broker's disk and replayed afterwards.</p>
        </Card>
    );
}

/** What keeps vacuum from freeing rows. */
function Holders({ list }: { list: Holder[] | undefined }) {
    if (!list) return null;
    return (
        <Card title="Old transactions" side={<span class="dim">they keep vacuum from freeing rows</span>}>
            {list.length === 0 ? <Empty>None is older than 10 s.</Empty> : (
                <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                    <thead><tr><th>Kind</th><th>Name</th><th>User</th><th class="num">Process</th><th>State</th><th class="num">Open for</th><th class="num">Transactions since</th><th>Last statement</th></tr></thead>
                    <tbody>{list.map((t, i) => (
                        <tr key={i}><td>{t.kind}</td><td><bdi>{t.name || "–"}</bdi></td><td><bdi>{t.user ?? "–"}</bdi></td><td class="num">{t.pid ?? "–"}</td><td>{t.state ?? "–"}</td>
                            <td class="num">{t.ageSeconds === null ? "–" : <span class={t.ageSeconds >= 300 ? "bad-text" : ""}>{duration(t.ageSeconds)}</span>}</td><td class="num">{count(t.xminAge)}</td><td class="wide mono"><bdi>{t.query ?? ""}</bdi></td></tr>
                    ))}</tbody>
                </table></div>
            )}
        </Card>
    );
}

function table(rows: unknown): { columns: string[]; rows: Record<string, Json>[] } | null {
    if (!Array.isArray(rows) || rows.length === 0 || typeof rows[0] !== "object" || rows[0] === null) return null;
    return { columns: Object.keys(rows[0] as object), rows: rows as Record<string, Json>[] };
}

// Sections of the report, in the order of their use. The rest follows closed.
const SECTIONS: [string, string][] = [
    ["deadTuples", "Vacuum: dead rows by table"], ["autovacuumStatus", "Vacuum: last runs by table"], ["activeQueries", "Statements that run now"], ["tableSizes", "Sizes of tables"],
    ["hotUpdates", "Updates within a page (HOT)"], ["tableCache", "Cache hits of tables"], ["indexCache", "Cache hits of indexes"], ["bufferUsage", "Shared buffers by table"],
];
const HIDDEN = new Set(["schema", "totalSizeBytes", "tableSizeBytes", "indexSizeBytes"]);

function cellOf(column: string, v: Json | undefined): preact.JSX.Element | string {
    if (v === null || v === undefined) return "–";
    if (/^last/.test(column) && typeof v === "string") return <Time at={v} />;
    if (typeof v === "number") return (v % 1 ? v.toFixed(2) : count(v)) + (/ratio|percentage/i.test(column) ? " %" : "");
    return typeof v === "object" ? JSON.stringify(v) : String(v);
}

function Postgres({ pg, error }: { pg: Pg | undefined; error: string | undefined }) {
    if (!pg) return error ? <Problem text={error} /> : <Skeleton rows={6} />;
    const title = (key: string) => key.replace(/([A-Z])/g, " $1").toLowerCase().replace(/^./, (c) => c.toUpperCase());
    const config = pg.bufferConfig as { sharedBuffersSize?: string } | undefined;
    return (
        <>
            <h2 class="section">PostgreSQL</h2>
            <div class="tiles">
                <Tile label="Database" value={<bdi>{pg.database}</bdi>} />
                <Tile label="Cache hits" value={pg.databaseCache.cacheHitRatio.toFixed(1)} unit="%" note="of its block reads" />
                <Tile label="Shared buffers" value={config?.sharedBuffersSize ?? "–"} />
                <Tile label="Old transactions" value={count((pg.oldTransactions as unknown[] | undefined)?.length)} tone={(pg.oldTransactions as unknown[] | undefined)?.length ? "warn" : undefined} note="hold back vacuum" />
            </div>
            <Holders list={pg.oldTransactions as Holder[] | undefined} />
            {SECTIONS.map(([key, label], n) => {
                const t = table(pg[key]);
                const columns = t?.columns.filter((c) => !HIDDEN.has(c)) ?? [];
                return (
                    <details key={key} class="card" open={n === 0}>
                        <summary><h2>{label}</h2></summary>
                        {!t ? <Empty>Nothing to show.</Empty> : (
                            <div class="scroll" tabIndex={0} role="group" aria-label={label}><table>
                                <thead><tr>{columns.map((c) => <th key={c} class={typeof t.rows[0]![c] === "number" ? "num" : ""}>{title(c)}</th>)}</tr></thead>
                                <tbody>{t.rows.slice(0, 30).map((r, i) => (
                                    <tr key={i}>{columns.map((c) => <td key={c} class={typeof t.rows[0]![c] === "number" ? "num" : "wide"}><bdi>{cellOf(c, r[c])}</bdi></td>)}</tr>
                                ))}</tbody>
                            </table></div>
                        )}
                    </details>
                );
            })}
        </>
    );
}
