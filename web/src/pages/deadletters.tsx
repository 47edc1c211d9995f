// Dead letters: counted by error over time, one by one, and redrive.
import { Fragment } from "preact";
import { useRef, useState } from "preact/hooks";
import { query, request, usePoll } from "../api";
import { count, duration, plural } from "../format";
import { may } from "../identity";
import { Action, Card, Dialog, Empty, Pager, Problem, Skeleton, Time } from "../parts/basic";
import { Bar, Spark } from "../parts/chart";
import { Tree } from "../parts/tree";
import { link, setParams, usePlace } from "../router";
import type { DeadLetter } from "../types";
import { groupName } from "./message";

const PAGE = 50;
const STEP = 200; // dead letters of one request of a redrive, so that the progress moves

interface Page { messages: DeadLetter[]; total: number }
interface Kind { queue: string; error: string; count: number; consumerGroups: string[]; firstFailedAt: string; lastFailedAt: string; hourly: number[]; samples: { messageId: string; failedAt: string }[] }
interface Kinds { groups: Kind[]; counted: number; truncated: boolean }
interface Chosen { what: string; body: Record<string, unknown>; n: number }

export function DeadLettersPage() {
    const { params } = usePlace();
    const queue = params.get("queue") ?? "", error = params.get("error") ?? "", offset = Number(params.get("offset") ?? 0) || 0;
    const page = usePoll<Page>("api/v1/dlq" + query({ queue, exactError: error, limit: PAGE, offset }), 5000);
    const kinds = usePoll<Kinds>("api/v1/dlq/groups" + query({ queue }), 5000);
    const [chosen, setChosen] = useState<Set<string>>(new Set());
    const [redrive, setRedrive] = useState<Chosen>();
    const filter = { ...(queue ? { queue } : {}), ...(error ? { exactError: error } : {}) };
    const total = page.data?.total ?? 0;
    const what = error ? `“${error}”${queue ? " of " + queue : ""}` : queue ? "all of queue " + queue : "all dead letters";
    return (
        <>
            <div class="page-head">
                <h1>Dead letters</h1>
                {may("redrive") && (
                    <div class="buttons">
                        <button type="button" disabled={chosen.size === 0} onClick={() => setRedrive({ what: plural(chosen.size, "dead letter"), n: chosen.size, body: { ids: [...chosen] } })}>Send {chosen.size || ""} selected again</button>
                        <button type="button" class="primary" disabled={!total} onClick={() => setRedrive({ what, n: total, body: Object.keys(filter).length ? filter : { all: true } })}>Send all again</button>
                    </div>
                )}
            </div>
            {(queue || error) && (
                <div class="filters">
                    {queue && <button type="button" onClick={() => setParams({ queue: undefined, offset: undefined })}>Queue <bdi>{queue}</bdi> ×</button>}
                    {error && <button type="button" onClick={() => setParams({ error: undefined, offset: undefined })}>Error “<bdi>{error}</bdi>” ×</button>}
                </div>
            )}
            <Problem text={page.error ?? kinds.error} />
            <ByError kinds={kinds.data} onRedrive={setRedrive} />
            <OneByOne page={page.data} offset={offset} chosen={chosen} onChoose={setChosen} />
            {redrive && <RedriveDialog {...redrive} onClose={() => { setRedrive(undefined); setChosen(new Set()); page.reload(); kinds.reload(); }} />}
        </>
    );
}

function ByError({ kinds, onRedrive }: { kinds: Kinds | undefined; onRedrive: (c: Chosen) => void }) {
    const rows = kinds?.groups ?? [], most = rows[0]?.count ?? 1;
    return (
        <Card title="By error" side={<span class="dim">{!kinds ? "" : kinds.truncated ? `the newest ${count(kinds.counted)}` : `${count(kinds.counted)} in all`}</span>}>
            {!kinds ? <Skeleton rows={3} /> : rows.length === 0 ? <Empty>No dead letters.</Empty> : (
                <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                    <table>
                        <thead><tr><th>Error</th><th>Queue</th><th class="num">Messages</th><th>Last 24 h</th><th>Last</th><th>Samples</th><th><span class="sr">Actions</span></th></tr></thead>
                        <tbody>
                            {rows.map((k) => (
                                <tr key={k.queue + "\n" + k.error}>
                                    <td class="wide">{k.error ? <button type="button" class="quiet" onClick={() => setParams({ queue: k.queue, error: k.error, offset: undefined })}><bdi>{k.error}</bdi></button> : <span class="dim">no error text</span>}</td>
                                    <td><button type="button" class="quiet" onClick={() => setParams({ queue: k.queue, offset: undefined })}><bdi>{k.queue}</bdi></button><div class="dim small"><bdi>{k.consumerGroups.map(groupName).join(", ")}</bdi></div></td>
                                    <td class="num"><span class="withbar"><Bar part={k.count / most} tone="bad" />{count(k.count)}</span></td>
                                    <td><Spark values={k.hourly} label={`failures per hour of the last day: ${k.hourly.join(", ")}`} /></td>
                                    <td class="nowrap"><Time at={k.lastFailedAt} /><div class="dim small">since <Time at={k.firstFailedAt} /></div></td>
                                    <td class="nowrap">{k.samples.map((s, i) => <Fragment key={s.messageId}>{i > 0 && ", "}<a href={link(["message", s.messageId])} title={"failed " + s.failedAt} aria-label={`sample ${i + 1} of ${k.error}`}>{i + 1}</a></Fragment>)}</td>
                                    <td class="num nowrap">{may("redrive") && k.error && <button type="button" onClick={() => onRedrive({ what: `“${k.error}” of ${k.queue}`, n: k.count, body: { queue: k.queue, exactError: k.error } })}>Send again</button>}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </Card>
    );
}

function OneByOne({ page, offset, chosen, onChoose }: { page: Page | undefined; offset: number; chosen: Set<string>; onChoose: (s: Set<string>) => void }) {
    const [open, setOpen] = useState<string>();
    const rows = page?.messages ?? [];
    const every = rows.length > 0 && rows.every((m) => chosen.has(m.dlqId));
    const toggle = (ids: string[], on: boolean) => {
        const next = new Set(chosen);
        for (const id of ids) if (on) next.add(id); else next.delete(id);
        onChoose(next);
    };
    return (
        <Card title="Newest first">
            {!page ? <Skeleton rows={6} /> : rows.length === 0 ? <Empty>No dead letters.</Empty> : (
                <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                    <table>
                        <thead><tr><th><input type="checkbox" aria-label="Select the page" checked={every} onChange={() => toggle(rows.map((m) => m.dlqId), !every)} /></th><th>Message</th><th>Queue</th><th>Group</th><th>Error (click for the payload)</th><th class="num">Attempts</th><th>Failed</th></tr></thead>
                        <tbody>
                            {rows.map((m) => (
                                <Fragment key={m.dlqId}>
                                    <tr>
                                        <td><input type="checkbox" aria-label={"Select " + m.transactionId} checked={chosen.has(m.dlqId)} onChange={() => toggle([m.dlqId], !chosen.has(m.dlqId))} /></td>
                                        <td class="mono"><a href={link(["message", m.id])}><bdi>{m.transactionId ?? m.id}</bdi></a></td>
                                        <td><bdi>{m.queue}</bdi> / <bdi>{m.partition}</bdi></td>
                                        <td><bdi>{groupName(m.consumerGroup)}</bdi></td>
                                        <td class="wide"><button type="button" class="quiet" aria-expanded={open === m.dlqId} onClick={() => setOpen(open === m.dlqId ? undefined : m.dlqId)}><bdi>{m.errorMessage ?? "–"}</bdi></button></td>
                                        <td class="num">{m.attempts?.length || m.retryCount}</td>
                                        <td class="nowrap"><Time at={m.failedAt} /></td>
                                    </tr>
                                    {open === m.dlqId && m.data !== undefined && <tr><td colSpan={7}><Tree value={m.data} /></td></tr>}
                                </Fragment>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
            <Pager offset={offset} limit={PAGE} shown={rows.length} total={page?.total} onMove={(o) => setParams({ offset: o || undefined })} />
        </Card>
    );
}

/** Sends them again in steps, with a progress bar. Closing the dialog stops before the next step. */
function RedriveDialog({ what, body, n, onClose }: Chosen & { onClose: () => void }) {
    const [target, setTarget] = useState("");
    const [perSecond, setPerSecond] = useState("");
    const [done, setDone] = useState<number>();
    const [running, setRunning] = useState(false);
    const stopped = useRef(false);
    const rate = Number(perSecond) || 0;
    const close = () => { stopped.current = true; onClose(); };
    const run = async () => {
        setRunning(true);
        let sum = 0;
        try {
            while (!stopped.current) {
                const begin = Date.now();
                const step = rate ? Math.max(1, Math.min(STEP, Math.ceil(rate))) : STEP; // with a rate about a second's worth
                const r = await request<{ redriven: number; more: boolean }>("POST", "api/v1/dlq/redrive", { ...body, limit: step, ...(target ? { targetQueue: target } : {}), ...(rate ? { ratePerSecond: rate } : {}) });
                sum += r.redriven;
                setDone(sum);
                if (!r.more || r.redriven === 0) break;
                // The rate of one request begins anew with the next, so the next one waits for its turn.
                if (rate) await new Promise((go) => setTimeout(go, Math.max(0, (r.redriven / rate) * 1000 - (Date.now() - begin))));
            }
        } finally {
            setRunning(false);
        }
    };
    return (
        <Dialog title="Send dead letters again" onClose={close}>
            <p>Sends <b><bdi>{what}</bdi></b> again ({plural(n, "message")}). They leave the dead letters and start with fresh attempts.</p>
            <form class="form" onSubmit={(e) => e.preventDefault()}>
                <label>Other queue<input value={target} placeholder="the same queue, to the group that failed" onInput={(e) => setTarget(e.currentTarget.value)} spellcheck={false} /></label>
                <label>Messages per second<input type="number" min="0.001" value={perSecond} placeholder="all at once" onInput={(e) => setPerSecond(e.currentTarget.value)} /></label>
                {rate > 0 && <p class="dim">Takes about {duration(n / rate)}. Keep this dialog open; closing it stops after the current step.</p>}
            </form>
            {done !== undefined && <p role="status"><progress aria-label="Progress" max={Math.max(n, done)} value={done} /> {plural(done, "message")} sent{running ? ` of ${count(n)} …` : "."}</p>}
            <div class="buttons"><button type="button" onClick={close}>{running ? "Stop" : "Close"}</button><Action label="Send again" kind="primary" disabled={running || done !== undefined} action={run} /></div>
        </Dialog>
    );
}
