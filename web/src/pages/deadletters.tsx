// Dead letters, by error and one by one, and redrive.
import { useMemo, useState } from "preact/hooks";
import { query, request, usePoll } from "../api";
import { count, plural } from "../format";
import { Action, Card, Dialog, Empty, Pager, Problem, Skeleton, Time } from "../parts/basic";
import { Bar } from "../parts/chart";
import { Tree } from "../parts/tree";
import { link, setParams, usePlace } from "../router";
import type { DeadLetter } from "../types";

const PAGE = 50;
const SAMPLE = 1000; // newest dead letters that are grouped by error

interface Page { messages: DeadLetter[]; total: number }
interface Kind { error: string; queue: string; n: number; last: string }

export function DeadLettersPage() {
    const { params } = usePlace();
    const queue = params.get("queue") ?? "", offset = Number(params.get("offset") ?? 0) || 0;
    const page = usePoll<Page>("api/v1/dlq" + query({ queue, limit: PAGE, offset }), 5000);
    const sample = usePoll<Page>("api/v1/dlq" + query({ queue, limit: SAMPLE }), 15000);
    const [chosen, setChosen] = useState<Set<string>>(new Set());
    const [redrive, setRedrive] = useState<{ what: string; body: Record<string, unknown>; n: number }>();
    const [open, setOpen] = useState<string>();
    const rows = page.data?.messages ?? [];
    const kinds = useMemo(() => {
        const by = new Map<string, Kind>();
        for (const m of sample.data?.messages ?? []) {
            const error = m.errorMessage ?? "(no error text)", key = m.queue + "\n" + error;
            const k = by.get(key);
            if (k) k.n++;
            else by.set(key, { error, queue: m.queue, n: 1, last: m.failedAt });
        }
        return [...by.values()].sort((a, b) => b.n - a.n);
    }, [sample.data]);
    const toggle = (id: string) => setChosen((s) => { const n = new Set(s); if (!n.delete(id)) n.add(id); return n; });
    const most = kinds[0]?.n ?? 1;

    return (
        <>
            <div class="page-head">
                <h1>Dead letters</h1>
                <div class="buttons">
                    {queue && <button type="button" onClick={() => setParams({ queue: undefined, offset: undefined })}>Queue {queue} ×</button>}
                    <button type="button" disabled={chosen.size === 0} onClick={() => setRedrive({ what: plural(chosen.size, "dead letter"), n: chosen.size, body: { ids: [...chosen] } })}>Send {chosen.size || ""} selected again</button>
                    <button type="button" class="primary" disabled={!page.data?.total} onClick={() => setRedrive({ what: queue ? "all of queue " + queue : "all dead letters", n: page.data?.total ?? 0, body: queue ? { queue } : { all: true } })}>Send all again</button>
                </div>
            </div>
            <Problem text={page.error} />
            <Card title="By error" side={<span class="dim">{page.data ? (page.data.total > SAMPLE ? `the newest ${count(SAMPLE)} of ${count(page.data.total)}` : `${count(page.data.total)} in all`) : ""}</span>}>
                {!sample.data ? <Skeleton rows={3} /> : kinds.length === 0 ? <Empty>No dead letters.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Error</th><th>Queue</th><th class="num">Messages</th><th>Last</th><th /></tr></thead>
                            <tbody>
                                {kinds.slice(0, 20).map((k) => (
                                    <tr key={k.queue + k.error}>
                                        <td class="wide"><bdi>{k.error}</bdi></td>
                                        <td><button type="button" class="quiet" onClick={() => setParams({ queue: k.queue, offset: undefined })}><bdi>{k.queue}</bdi></button></td>
                                        <td class="num"><span class="withbar"><Bar part={k.n / most} tone="bad" />{count(k.n)}</span></td>
                                        <td><Time at={k.last} /></td>
                                        <td class="num"><button type="button" disabled={k.error === "(no error text)"} onClick={() => setRedrive({ what: `“${k.error}” of ${k.queue}`, n: k.n, body: { queue: k.queue, error: k.error.slice(0, 255) } })}>Send again</button></td>
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                )}
            </Card>
            <Card title="Newest first">
                {!page.data ? <Skeleton rows={6} /> : rows.length === 0 ? <Empty>No dead letters.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th><span class="sr">Select</span></th><th>Message</th><th>Queue</th><th>Group</th><th>Error</th><th class="num">Attempts</th><th>Failed</th></tr></thead>
                            <tbody>
                                {rows.map((m) => (
                                    <>
                                        <tr key={m.dlqId}>
                                            <td><input type="checkbox" aria-label={"Select " + m.transactionId} checked={chosen.has(m.dlqId)} onChange={() => toggle(m.dlqId)} /></td>
                                            <td class="mono"><a href={link(["message", m.id])}><bdi>{m.transactionId}</bdi></a></td>
                                            <td><bdi>{m.queue}</bdi> / <bdi>{m.partition}</bdi></td>
                                            <td><bdi>{m.consumerGroup}</bdi></td>
                                            <td class="wide"><button type="button" class="quiet" aria-expanded={open === m.dlqId} onClick={() => setOpen(open === m.dlqId ? undefined : m.dlqId)}><bdi>{m.errorMessage ?? "–"}</bdi></button></td>
                                            <td class="num">{m.attempts?.length || m.retryCount}</td>
                                            <td><Time at={m.failedAt} /></td>
                                        </tr>
                                        {open === m.dlqId && m.data !== undefined && <tr key={m.dlqId + "p"}><td colSpan={7}><Tree value={m.data} /></td></tr>}
                                    </>
                                ))}
                            </tbody>
                        </table>
                    </div>
                )}
                <Pager offset={offset} limit={PAGE} shown={rows.length} total={page.data?.total} onMove={(o) => setParams({ offset: o || undefined })} />
            </Card>
            {redrive && <RedriveDialog {...redrive} onClose={() => { setRedrive(undefined); setChosen(new Set()); page.reload(); sample.reload(); }} />}
        </>
    );
}

function RedriveDialog({ what, body, n, onClose }: { what: string; body: Record<string, unknown>; n: number; onClose: () => void }) {
    const [target, setTarget] = useState("");
    const [perSecond, setPerSecond] = useState("");
    const [done, setDone] = useState<number>();
    const [running, setRunning] = useState(false);
    const run = async () => {
        setRunning(true);
        let sum = 0;
        try {
            for (;;) {
                const r = await request<{ redriven: number; more: boolean }>("POST", "api/v1/dlq/redrive", { ...body, ...(target ? { targetQueue: target } : {}), ...(perSecond ? { ratePerSecond: Number(perSecond) } : {}) });
                sum += r.redriven;
                setDone(sum);
                if (!r.more || r.redriven === 0) break;
            }
        } finally {
            setRunning(false);
        }
    };
    return (
        <Dialog title="Send dead letters again" onClose={onClose}>
            <p>Sends <b><bdi>{what}</bdi></b> again ({plural(n, "message")}). They leave the dead letters and start with fresh attempts.</p>
            <form class="form" onSubmit={(e) => e.preventDefault()}>
                <label>Other queue<input value={target} placeholder="the same queue" onInput={(e) => setTarget(e.currentTarget.value)} spellcheck={false} /></label>
                <label>Messages per second<input type="number" min="0.001" value={perSecond} placeholder="all at once" onInput={(e) => setPerSecond(e.currentTarget.value)} /></label>
            </form>
            {done !== undefined && <p role="status"><progress max={Math.max(n, done)} value={done} /> {plural(done, "message")} sent{running ? " …" : "."}</p>}
            <div class="buttons"><button type="button" onClick={onClose}>Close</button><Action label="Send again" kind="primary" disabled={running || done !== undefined} action={run} /></div>
        </Dialog>
    );
}
