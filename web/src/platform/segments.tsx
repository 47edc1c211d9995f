// A tenant's segment: edit the filter, see the count, preview customers, ask why, save.
import { useEffect, useMemo, useState } from "preact/hooks";
import { query, request, seg, usePoll } from "../api";
import { count, duration, plural } from "../format";
import { Action, Badge, Card, Dialog, Empty, Opener, Problem, Skeleton, Tile } from "../parts/basic";
import { Chart, type Line } from "../parts/chart";
import { go, link } from "../router";
import { leaf, Node } from "./builder";
import type { Catalogue, Counted, Customer, Explained, Filter, Segment } from "./types";

const PAUSE_MS = 400; // after the last change of the filter

/** Posts the filter to `what` when it has not changed for a moment. */
function useAnswer<T>(tenant: string, what: string, filter: Filter | undefined, more: object = {}): { data: T | undefined; error: string | undefined } {
    const [state, setState] = useState<{ data?: T; error?: string }>({});
    const text = JSON.stringify(filter);
    useEffect(() => {
        if (filter === undefined) return;
        const stop = new AbortController();
        const timer = setTimeout(async () => {
            try {
                setState({ data: await request<T>("POST", `api/v1/tenants/${seg(tenant)}/segments/${what}`, { filter, ...more }, stop.signal) });
            } catch (e) {
                if (!stop.signal.aborted) setState({ error: (e as Error).message });
            }
        }, PAUSE_MS);
        return () => {
            clearTimeout(timer);
            stop.abort();
        };
    }, [tenant, what, text]);
    return { data: state.data, error: state.error };
}

export function SegmentPage({ tenant, name }: { tenant: string; name: string | undefined }) {
    const catalogue = usePoll<Catalogue>("api/v1/segments/attributes", 0);
    const saved = usePoll<Segment>(name === undefined ? null : `api/v1/tenants/${seg(tenant)}/segments/${seg(name)}`, 0);
    const [filter, setFilter] = useState<Filter>();
    const [title, setTitle] = useState(name ?? "");
    useEffect(() => {
        if (name === undefined && catalogue.data && !filter) setFilter(leaf(catalogue.data.attributes[0]!));
        if (saved.data && !filter) setFilter(saved.data.filter);
    }, [saved.data, catalogue.data]);
    const counted = useAnswer<Counted>(tenant, "count", filter);
    const preview = useAnswer<{ customers: Customer[] }>(tenant, "preview", filter, { limit: 10 });
    const save = async () => {
        await request("POST", `api/v1/tenants/${seg(tenant)}/segments`, { name: title, filter });
        go(["tenants", tenant, "segments", title]);
    };
    return (
        <>
            <div class="page-head">
                <h1><a class="crumb" href={link(["tenants", tenant])}><bdi>{tenant}</bdi></a> / {name === undefined ? "New segment" : <bdi>{name}</bdi>}</h1>
                <div class="buttons">
                    <input aria-label="Name of the segment" placeholder="name" value={title} onInput={(e) => setTitle(e.currentTarget.value)} />
                    <Action op="save_segment" label="Save" kind="primary" disabled={!title || !filter} action={save} />
                    {name !== undefined && <Action op="delete_segment" label="Delete" kind="danger" action={async () => { await request("DELETE", `api/v1/tenants/${seg(tenant)}/segments/${seg(name)}`); go(["tenants", tenant]); }} />}
                </div>
            </div>
            <Problem text={catalogue.error ?? saved.error} />
            <div class="tiles">
                <Tile label="Customers" value={counted.data ? count(counted.data.count) : "–"} note={counted.data ? `in ${duration(counted.data.tookMs / 1000)}` : undefined} />
                <Tile label="Answered by" value={counted.data?.path ?? "–"} note={counted.data?.cached ? "from the cache" : undefined} />
                <Tile label="Behind" value={counted.data ? duration(counted.data.staleMs / 1000) : "–"} />
            </div>
            <Problem text={counted.error} />
            <Card title="Filter">{catalogue.data && filter ? <Node filter={filter} catalogue={catalogue.data} onChange={setFilter} /> : <Skeleton rows={2} />}</Card>
            <Card title="Some of the customers">
                {preview.data === undefined ? (preview.error ? <Empty>{preview.error}</Empty> : <Skeleton rows={4} />) : preview.data.customers.length === 0 ? <Empty>Nobody matches.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>Name</th><th>E-mail</th><th>City</th><th>Customer</th></tr></thead>
                        <tbody>{preview.data.customers.map((c) => <tr key={c.id}><td><bdi>{[c.firstName, c.lastName].filter(Boolean).join(" ")}</bdi></td><td><bdi>{c.email ?? "–"}</bdi></td><td><bdi>{c.city ?? "–"}</bdi></td><td class="mono">{c.customer}</td></tr>)}</tbody>
                    </table></div>
                )}
            </Card>
            <Explain tenant={tenant} filter={filter} />
            {name !== undefined && saved.data && <Subscribe path={`api/v1/tenants/${seg(tenant)}/segments/${seg(name)}/subscription`} segment={saved.data} reload={saved.reload} />}
            {name !== undefined && <History tenant={tenant} name={name} />}
        </>
    );
}

/** Entries and exits of the segment as messages in a queue. */
function Subscribe({ path, segment, reload }: { path: string; segment: Segment; reload: () => void }) {
    const [open, setOpen] = useState(false);
    const [queue, setQueue] = useState("");
    const [every, setEvery] = useState("10");
    const [initial, setInitial] = useState(false);
    const s = segment.subscription;
    return (
        <Card title="Subscription" side={s
            ? <Action op="unsubscribe_segment" label="End the subscription" kind="danger" action={async () => { await request("DELETE", path); reload(); }} />
            : <Opener op="subscribe_segment" label="Subscribe" onClick={() => setOpen(true)} />}>
            {s ? <p>Customers who enter or leave are sent to the queue <b><bdi>{s.queue}</bdi></b>{s.everySeconds ? `, evaluated every ${s.everySeconds} s` : ""}. {s.error && <Badge tone="bad">{s.error}</Badge>}</p>
                : <p class="dim">Nobody is told when customers enter or leave this segment.</p>}
            {open && (
                <Dialog title={"Subscribe to " + segment.name} onClose={() => setOpen(false)}>
                    <label>Queue of the broker<input value={queue} onInput={(e) => setQueue(e.currentTarget.value)} spellcheck={false} /></label>
                    <label>Evaluate every (seconds)<input type="number" min="1" max="3540" value={every} onInput={(e) => setEvery(e.currentTarget.value)} /></label>
                    <label class="flag"><input type="checkbox" checked={initial} onChange={(e) => setInitial(e.currentTarget.checked)} />also send the customers who are in it now</label>
                    <div class="buttons"><button type="button" onClick={() => setOpen(false)}>Cancel</button>
                        <Action label="Subscribe" kind="primary" disabled={!queue} action={async () => { await request("PUT", path, { queue, everySeconds: Number(every) || 10, initial }); setOpen(false); reload(); }} /></div>
                </Dialog>
            )}
        </Card>
    );
}

function Explain({ tenant, filter }: { tenant: string; filter: Filter | undefined }) {
    const [customer, setCustomer] = useState("");
    const [answer, setAnswer] = useState<Explained>();
    return (
        <Card title="Why is a customer in it, or not?">
            <form class="filters" onSubmit={(e) => e.preventDefault()}>
                <input class="search" aria-label="Customer" placeholder="id of a customer" value={customer} onInput={(e) => setCustomer(e.currentTarget.value)} />
                <Action label="Explain" disabled={!customer || !filter} action={async () => setAnswer(await request<Explained>("POST", `api/v1/tenants/${seg(tenant)}/segments/explain`, { customer, filter }))} />
            </form>
            {answer && (
                <>
                    {answer.because && <p><bdi>{answer.because}</bdi></p>}
                    <ul class="findings">{(answer.filters ?? []).map((f) => <li key={f.at}><Badge tone={f.verdict ? "ok" : "bad"}>{f.verdict ? "true" : "false"}</Badge> <bdi>{f.label}</bdi> <span class="dim">value: <bdi>{JSON.stringify(f.value)}</bdi></span></li>)}</ul>
                </>
            )}
        </Card>
    );
}

function History({ tenant, name }: { tenant: string; name: string }) {
    const list = usePoll<{ counts: { at: string; count: number }[] }>(`api/v1/tenants/${seg(tenant)}/segments/${seg(name)}/counts` + query({ limit: 1000 }), 10000);
    const rows = useMemo(() => [...(list.data?.counts ?? [])].reverse(), [list.data]);
    const times = useMemo(() => rows.map((r) => Date.parse(r.at) / 1000), [rows]);
    const lines = useMemo<Line[]>(() => [{ label: "customers", color: "a", fill: true, values: rows.map((r) => r.count) }], [rows]);
    return (
        <Card title="Counts over time" side={<Action op="count_saved_segment" label="Count now" action={async () => { await request("POST", `api/v1/tenants/${seg(tenant)}/segments/${seg(name)}/count`); list.reload(); }} />}>
            {rows.length === 0 ? <Empty>Not counted yet.</Empty> : <><p class="dim">{plural(rows.length, "count")}</p><Chart label="Customers" times={times} lines={lines} format={count} /></>}
        </Card>
    );
}
