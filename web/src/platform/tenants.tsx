// Tenants with their health, read models, segments and campaigns; the pools of their databases; events that wait.
import { useState } from "preact/hooks";
import { query, request, seg, useKept, usePoll } from "../api";
import { count, duration, plural, rate } from "../format";
import { Action, Badge, Card, Empty, Opener, Pager, Problem, SearchBox, Skeleton, Tile, Time, useNow, type Tone } from "../parts/basic";
import { link, setParams, usePlace } from "../router";
import type { Campaign, Pools, ReadModel, Segment, Tenant } from "./types";

interface Tenants { tenants: Tenant[]; latestVersion: number; total: number; troubled: number; behind: Record<string, string> }
interface Held { tenants: { tenant: string; events: number; attempts: number; since: string; nextAttemptAt: string; lastError: string }[] }

export function tone(state: string): Tone {
    return state === "ready" || state === "up" ? "ok" : state === "down" || state === "failed" ? "bad" : "warn";
}

export function PlatformOverview() {
    const pools = usePoll<Pools>("api/v1/pools", 2000);
    const tenants = usePoll<Tenants>("api/v1/tenants" + query({ sort: "trouble", limit: 20 }), 5000);
    const held = usePoll<Held>("api/v1/events/held", 5000);
    const metrics = usePoll<{ events: { applied: number; duplicate: number; bad: number; held: number; visibleP50Ms: number; visibleP99Ms: number }; segments: Record<string, number> }>("metrics", 2000);
    const p = pools.data, e = metrics.data?.events;
    const ill = (tenants.data?.tenants ?? []).filter((t) => t.state !== "ready" || t.error);
    return (
        <>
            <div class="page-head"><h1>Overview</h1></div>
            <div class="tiles wide">
                <Tile label="Tenants" value={count(tenants.data?.total)} tone={tenants.data?.troubled ? "warn" : undefined} note={tenants.data ? (tenants.data.troubled ? plural(tenants.data.troubled, "needs attention", "need attention") : "all ready") : undefined} href={link(["tenants"])} />
                <Tile label="Events applied" value={count(e?.applied)} note="by this process" />
                <Tile label="Event visible after" value={e ? duration(e.visibleP50Ms / 1000) : "–"} note={e ? `p99 ${duration(e.visibleP99Ms / 1000)}` : undefined} />
                <Tile label="Events held" value={count(e?.held)} tone={e && e.held > 0 ? "warn" : undefined} note="their tenant is away" />
                <Tile label="Invalid events" value={count(e?.bad)} tone={e && e.bad > 0 ? "warn" : undefined} />
                <Tile label="Pools" value={p ? `${p.open} / ${p.max}` : "–"} note="open / limit" href={link(["pools"])} />
                <Tile label="Pool hit rate" value={p ? rate(p.hitRate * 100) : "–"} unit="%" href={link(["pools"])} />
                <Tile label="Databases away" value={count(p?.down)} tone={p && p.down > 0 ? "bad" : undefined} href={link(["pools"])} />
            </div>
            <Problem text={tenants.error ?? pools.error} />
            <Card title="Needs attention">
                {!tenants.data || !p ? <Skeleton rows={2} /> : ill.length === 0 && p.tenants.every((t) => !t.error) && (held.data?.tenants.length ?? 0) === 0 ? <Empty>Nothing. All tenants are ready.</Empty> : (
                    <ul class="findings">
                        {tenants.data.troubled > ill.length && <li><a href={link(["tenants"], { sort: "trouble" })}>{plural(tenants.data.troubled - ill.length, "more tenant")}</a></li>}
                        {ill.map((t) => <li key={"t" + t.tenant}><a href={link(["tenants", t.tenant])}><Badge tone={tone(t.state)}>{t.state}</Badge> <b><bdi>{t.tenant}</bdi></b> <bdi>{t.error ?? ""}</bdi></a></li>)}
                        {p.tenants.filter((t) => t.error).map((t) => <li key={"p" + t.tenant}><a href={link(["pools"])}><Badge tone="bad">{t.state}</Badge> <b><bdi>{t.tenant}</bdi></b> <bdi>{t.error}</bdi></a></li>)}
                        {(held.data?.tenants ?? []).map((t) => <li key={"h" + t.tenant}><a href={link(["tenants", t.tenant])}><Badge tone="warn">events held</Badge> <b><bdi>{t.tenant}</bdi></b> {plural(t.events, "event")} since <Time at={t.since} />, tried {plural(t.attempts, "time")}, again <Time at={t.nextAttemptAt} />. <bdi>{t.lastError}</bdi></a></li>)}
                    </ul>
                )}
            </Card>
            <Freshness />
        </>
    );
}

interface ModelState { tenant: string; model: string; mode: string | null; effectiveMode: string; changedAt: string | null; staleSince: string | null; refreshedAt: string | null; failures: number; error: string | null }

const TARGET_S = 60; // older changes than this should be in a view

/** How far the model is behind; live models are never. */
function Behind({ m }: { m: ModelState }) {
    if (m.effectiveMode === "live" || m.staleSince === null) return <Badge tone="ok">{m.effectiveMode === "live" ? "live" : "fresh"}</Badge>;
    return <Lag since={m.staleSince} />;
}

/** How long a change waits for its view, against the target. */
function Lag({ since }: { since: string }) {
    const s = Math.max(0, (useNow(5000) - Date.parse(since)) / 1000);
    return <Badge tone={s > TARGET_S ? "warn" : "ok"}>{duration(Math.floor(s))} behind</Badge>;
}

const PAGE = 50;

function Freshness() {
    const [search, setSearch] = useState("");
    const [offset, setOffset] = useState(0);
    const list = usePoll<{ default: string; total: number; readModels: ModelState[] }>("api/v1/read-models" + query({ search, sort: "behind", limit: PAGE, offset }), 5000);
    const page = useKept(list.data), rows = page?.readModels ?? [];
    return (
        <Card title="Freshness of read models" side={<><span class="dim">{page ? `default: ${page.default}; target: views have every change after ${TARGET_S} s` : ""}</span><SearchBox label="Tenant contains" value={search} onChange={(v) => { setSearch(v); setOffset(0); }} /></>}>
            <Problem text={list.error} />
            {!page ? (list.error ? null : <Skeleton rows={4} />) : rows.length === 0 ? <Empty>{search ? "No tenant matches." : "No read model yet."}</Empty> : (
                <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                    <thead><tr><th>Tenant</th><th>Model</th><th>Mode</th><th>Freshness</th><th>Last change</th><th>View refreshed</th><th class="num">Failures</th></tr></thead>
                    <tbody>{rows.map((m) => (
                        <tr key={m.tenant + m.model}><td><a href={link(["tenants", m.tenant])}><bdi>{m.tenant}</bdi></a></td><td>{m.model}</td><td>{m.effectiveMode}</td><td><Behind m={m} /></td>
                            <td><Time at={m.changedAt} /></td><td><Time at={m.refreshedAt} /></td><td class="num">{m.failures > 0 ? <span class="bad-text" title={m.error ?? ""}>{count(m.failures)}</span> : "0"}</td></tr>
                    ))}</tbody>
                </table></div>
            )}
            <Pager offset={offset} limit={PAGE} shown={rows.length} total={page?.total} onMove={setOffset} />
        </Card>
    );
}

const ORDERS: [string, string][] = [["name", "by name"], ["trouble", "needs attention first"], ["behind", "furthest behind first"]];

export function TenantsPage() {
    const { params } = usePlace();
    const search = params.get("search") ?? "", sort = params.get("sort") ?? "name", offset = Number(params.get("offset") ?? 0) || 0;
    const tenants = usePoll<Tenants>("api/v1/tenants" + query({ search, sort, limit: PAGE, offset }), 5000);
    const pools = usePoll<Pools>("api/v1/pools", 5000);
    const pool = new Map((pools.data?.tenants ?? []).map((t) => [t.tenant, t]));
    const page = useKept(tenants.data), rows = page?.tenants ?? [];
    return (
        <>
            <div class="page-head"><h1>Tenants</h1></div>
            <div class="filters">
                <SearchBox label="Name contains" value={search} onChange={(v) => setParams({ search: v, offset: undefined })} />
                <select aria-label="Order" value={sort} onChange={(e) => setParams({ sort: e.currentTarget.value, offset: undefined })}>{ORDERS.map(([id, label]) => <option key={id} value={id}>{label}</option>)}</select>
                <span class="dim">{page ? plural(page.total, "tenant") : ""}</span>
            </div>
            <Card>
                <Problem text={tenants.error} />
                {!page ? (tenants.error ? null : <Skeleton rows={5} />) : rows.length === 0 ? <Empty>{search ? "No tenant matches." : "No tenant. Create one with POST /api/v1/tenants or queen tenant add."}</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>Tenant</th><th>State</th><th>Views behind</th><th>Database</th><th>Pool</th><th class="num">Schema</th><th>Created</th></tr></thead>
                        <tbody>{rows.map((t) => (
                            <tr key={t.tenant}>
                                <td><a href={link(["tenants", t.tenant])}><bdi>{t.tenant}</bdi></a></td>
                                <td><Badge tone={tone(t.state)}>{t.state}</Badge> <bdi class="error-text">{t.error ?? ""}</bdi></td>
                                <td>{page.behind[t.tenant] ? <Lag since={page.behind[t.tenant]!} /> : <Badge tone="ok">current</Badge>}</td>
                                <td>{t.kind} <bdi class="dim">{t.url ?? t.database ?? ""}</bdi></td>
                                <td>{pool.has(t.tenant) ? <Badge tone={tone(pool.get(t.tenant)!.state)}>{pool.get(t.tenant)!.state}</Badge> : <span class="dim">closed</span>}</td>
                                <td class="num">{t.schemaVersion ?? "–"}{t.schemaVersion !== null && t.schemaVersion < page.latestVersion && <> <Badge tone="warn">old</Badge></>}</td>
                                <td><Time at={t.createdAt} /></td>
                            </tr>
                        ))}</tbody>
                    </table></div>
                )}
                <Pager offset={offset} limit={PAGE} shown={rows.length} total={page?.total} onMove={(o) => setParams({ offset: o || undefined })} />
            </Card>
        </>
    );
}

export function TenantPage({ tenant }: { tenant: string }) {
    const info = usePoll<Tenant>("api/v1/tenants/" + seg(tenant), 5000);
    const health = usePoll<{ status: string; answerMs?: number; error?: string }>(`api/v1/tenants/${seg(tenant)}/health`, 5000);
    const models = usePoll<{ models: ReadModel[] }>(`api/v1/tenants/${seg(tenant)}/read-models`, 3000);
    const segments = usePoll<{ segments: Segment[] }>(`api/v1/tenants/${seg(tenant)}/segments` + query({ limit: 1000 }), 10000);
    const campaigns = usePoll<{ campaigns: Campaign[] }>(`api/v1/tenants/${seg(tenant)}/campaigns`, 10000);
    return (
        <>
            <div class="page-head">
                <h1><a class="crumb" href={link(["tenants"])}>Tenants</a> / <bdi>{tenant}</bdi></h1>
                <div class="buttons"><Opener op="save_segment" label="New segment" kind="primary" onClick={() => { location.hash = link(["tenants", tenant, "segments"]); }} /></div>
            </div>
            <Problem text={info.error} />
            <div class="tiles">
                <Tile label="State" value={info.data?.state ?? "–"} note={info.data?.error ?? undefined} />
                <Tile label="Database" value={health.data?.status ?? (health.error ? "away" : "–")} tone={health.error ? "bad" : undefined} note={health.data?.answerMs !== undefined ? `answers in ${duration(health.data.answerMs / 1000)}` : health.error} />
                <Tile label="Kind" value={info.data?.kind ?? "–"} note={info.data?.database ?? undefined} />
                <Tile label="Segments" value={count(segments.data?.segments.length)} />
            </div>
            <Card title="Read models" side={<Action op="read_model_refresh" label="Refresh views" action={async () => { await request("POST", `api/v1/tenants/${seg(tenant)}/read-models/refresh`); models.reload(); }} />}>
                {!models.data ? (models.error ? <Empty>{models.error}</Empty> : <Skeleton rows={2} />) : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>Model</th><th>Mode</th><th>Answers from</th><th class="num">Behind</th><th>View refreshed</th><th class="num">Rows</th><th class="num">Took</th><th class="num">Checked rows</th></tr></thead>
                        <tbody>{models.data.models.map((m) => (
                            <tr key={m.model}><td>{m.model}</td><td>{m.mode}</td><td>{m.source}</td><td class="num">{m.staleMs === null ? "–" : duration(m.staleMs / 1000)}</td>
                                <td><Time at={m.view.refreshedAt} /> {m.view.refreshing && <Badge tone="info">refreshing</Badge>} {m.view.error && <Badge tone="bad">{m.view.error}</Badge>}</td>
                                <td class="num">{count(m.view.rows)}</td><td class="num">{m.view.durationMs === null ? "–" : duration(m.view.durationMs / 1000)}</td>
                                <td class="num">{count(m.live.checkedRows)}{m.live.differingRows > 0 && <> <Badge tone="bad">{count(m.live.differingRows)} differ</Badge></>}</td></tr>
                        ))}</tbody>
                    </table></div>
                )}
            </Card>
            <div class="grid2">
                <Card title="Segments">
                    {!segments.data ? (segments.error ? <Empty>{segments.error}</Empty> : <Skeleton rows={2} />) : segments.data.segments.length === 0 ? <Empty>No saved segment.</Empty> : (
                        <ul class="findings">{segments.data.segments.map((s) => <li key={s.id}><a href={link(["tenants", tenant, "segments", s.name])}><bdi>{s.name}</bdi> {s.subscription && <Badge tone="info">to {s.subscription.queue}</Badge>} <span class="dim">{s.lastCount ? <>{plural(s.lastCount.count, "customer")}, <Time at={s.lastCount.at} /></> : "not counted"}</span></a></li>)}</ul>
                    )}
                </Card>
                <Card title="Campaigns">
                    {!campaigns.data ? (campaigns.error ? <Empty>{campaigns.error}</Empty> : <Skeleton rows={2} />) : campaigns.data.campaigns.length === 0 ? <Empty>No campaign.</Empty> : (
                        <ul class="findings">{campaigns.data.campaigns.map((c) => <li key={c.id}><a href={link(["tenants", tenant, "campaigns", c.id])}><b><bdi>{c.name}</bdi></b> <span class="dim">{describeWhen(c)}, {plural(c.runs, "run")}</span></a></li>)}</ul>
                    )}
                </Card>
            </div>
        </>
    );
}

export function describeWhen(c: Campaign): string {
    if (c.when.kind === "entering") return `when a customer enters ${c.segment}`;
    return c.when.kind === "cron" ? `${c.when.cron} ${c.when.timezone ?? ""}` : c.when.kind === "at" ? `at ${c.when.at}` : "once, at its creation";
}

export function PoolsPage() {
    const pools = usePoll<Pools>("api/v1/pools", 1000);
    const p = pools.data;
    const order = [...(p?.tenants ?? [])].sort((a, b) => Number(b.refs > 0) - Number(a.refs > 0) || a.idleMs - b.idleMs);
    return (
        <>
            <div class="page-head"><h1>Pools of tenant databases</h1></div>
            <Problem text={pools.error} />
            <div class="tiles">
                <Tile label="Open" value={p ? `${p.open} / ${p.max}` : "–"} note="pools / limit" />
                <Tile label="In use" value={count(p?.held)} note="cannot be evicted" />
                <Tile label="Hit rate" value={p ? rate(p.hitRate * 100) : "–"} unit="%" note={p ? `${count(p.hits)} of ${count(p.hits + p.misses)}` : undefined} />
                <Tile label="Evictions" value={count(p?.evictions)} />
                <Tile label="Waiting" value={count(p?.waiting)} tone={p && p.waiting > 0 ? "warn" : undefined} />
                <Tile label="Away" value={count(p?.down)} tone={p && p.down > 0 ? "bad" : undefined} />
            </div>
            <Card title="Most recently used first" side={<span class="dim">the last one is evicted next</span>}>
                {!p ? <Skeleton rows={4} /> : (
                    <ol class="lru">
                        {order.map((t) => (
                            <li key={t.tenant} class={t.error ? "bad" : t.refs > 0 ? "info" : "idle"} title={t.error ?? ""}>
                                <a href={link(["tenants", t.tenant])}><b><bdi>{t.tenant}</bdi></b></a>
                                <span>{t.error ? t.state : t.refs > 0 ? "in use, cannot be evicted" : t.idleMs < 1000 ? "used just now" : `idle ${duration(Math.floor(t.idleMs / 1000))}`}</span>
                                <span class="dim">{plural(t.connections, "connection")}</span>
                            </li>
                        ))}
                        {p.max > order.length && <li class="free"><span class="dim">{plural(p.max - order.length, "free place")}</span></li>}
                    </ol>
                )}
            </Card>
        </>
    );
}
