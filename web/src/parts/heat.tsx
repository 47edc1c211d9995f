// The partitions of a queue as a field of coloured squares, 1 or 100,000 of them: the server makes at most 1,000 cells, and a click on a cell
// of several partitions shows these.
import { useEffect, useRef, useState } from "preact/hooks";
import { query, seg, usePoll } from "../api";
import { count, duration, durationShort, plural } from "../format";
import { setParams, usePlace } from "../router";
import { Badge, Card, Empty, Problem, Skeleton, Time, useNow } from "./basic";

interface Lease { consumerGroup: string; leaseId: string | null; expiresAt: string }
interface Cell { first: string; last: string; partitions: number; pending: number; mostPending: number; processing: number; oldestMessage: string | null; leased: number; leases: Lease[] | null }
interface Map { partitions: number; groups: string[]; cells: Cell[] }

const CELLS = 1000;
const LEVELS = 5; // colours of the scale
const BY: [string, string][] = [["backlog", "Backlog"], ["age", "Age of the oldest"], ["leases", "Leases"]];

export function PartitionMap({ queue, onPick }: { queue: string; onPick: (partition: string) => void }) {
    const { params } = usePlace();
    const by = params.get("by") ?? "backlog", group = params.get("group") ?? "", from = params.get("from") ?? "", to = params.get("to") ?? "";
    const map = usePoll<Map>(`api/v1/status/queues/${seg(queue)}/map` + query({ cells: CELLS, group, from, to }), 2000);
    const kept = useRef<Map>(); // stays while another range is loaded
    const [chosen, setChosen] = useState<string>();
    const now = useNow(5000);
    if (map.data) kept.current = map.data;
    const m = kept.current;
    if (!m) return <Card>{map.error ? <Problem text={map.error} /> : <Skeleton rows={6} />}</Card>;
    const age = (c: Cell) => (c.oldestMessage ? Math.max(0, (now - Date.parse(c.oldestMessage)) / 1000) : 0);
    const value = (c: Cell) => (by === "age" ? age(c) : by === "leases" ? c.leased / c.partitions : c.mostPending);
    const most = by === "leases" ? 1 : m.cells.reduce((x, c) => Math.max(x, value(c)), 0);
    const cell = m.cells.find((c) => c.first === chosen);
    return (
        <Card title={plural(m.partitions, "partition")} side={
            <>
                {(from || to) && <button type="button" onClick={() => setParams({ from: undefined, to: undefined })}>All partitions</button>}
                <select aria-label="Consumer group" value={group} onChange={(e) => setParams({ group: e.currentTarget.value || undefined })}>
                    <option value="">any group</option>
                    {m.groups.map((g) => <option key={g} value={g}>{g === "__QUEUE_MODE__" ? "queue mode" : g}</option>)}
                </select>
                <div class="segmented" role="group" aria-label="Colour">
                    {BY.map(([id, label]) => <button key={id} type="button" aria-pressed={id === by} onClick={() => setParams({ by: id })}>{label}</button>)}
                </div>
            </>
        }>
            <Problem text={map.error} />
            {m.cells.length === 0 ? <Empty>No partition has a message yet.</Empty> : (
                <Squares levels={m.cells.map((c) => level(value(c), most))} chosen={m.cells.findIndex((c) => c.first === chosen)} onChoose={(i) => setChosen(m.cells[i]?.first)}
                    label={`${m.partitions} partitions; the largest backlog is ${Math.max(0, ...m.cells.map((c) => c.mostPending))} messages. The table below lists them.`} />
            )}
            <div class="legend dim">
                <span class="scale">{by === "leases" ? "no lease" : "0"} {Array.from({ length: LEVELS + 1 }, (_, i) => <i key={i} class={"heat-" + i} />)} {by === "age" ? durationShort(most) : by === "leases" ? "leased" : `${count(most)} messages`}</span>
                {m.cells.length < m.partitions && <span>each square stands for {count(Math.ceil(m.partitions / m.cells.length))} neighbours by name; the colour is that of the worst</span>}
            </div>
            <div class="cell-note" role="status">
                {!cell ? <span class="dim">Choose a square with the mouse, or with the arrow keys.</span> : (
                    <>
                        <b><bdi>{cell.first}</bdi>{cell.partitions > 1 && <> … <bdi>{cell.last}</bdi></>}</b>{" "}
                        {plural(cell.pending, "message")} waiting, {count(cell.processing)} in flight{cell.oldestMessage && <>, the oldest for {duration(Math.floor(age(cell)))}</>}.{" "}
                        {cell.leases?.map((l) => <span key={l.consumerGroup}><Badge tone="info">leased</Badge> by <bdi>{l.consumerGroup}</bdi> until <Time at={l.expiresAt} exact /> <bdi class="mono dim">{l.leaseId ?? ""}</bdi> </span>)}
                        {cell.partitions > 1 && cell.leased > 0 && <span>{plural(cell.leased, "lease")}. </span>}
                        {cell.partitions > 1
                            ? <button type="button" onClick={() => { setChosen(undefined); setParams({ from: cell.first, to: cell.last }); }}>Show these {count(cell.partitions)}</button>
                            : <button type="button" onClick={() => onPick(cell.first)}>Find in the table</button>}
                    </>
                )}
            </div>
        </Card>
    );
}

/** 0 to LEVELS, in steps of the logarithm. */
function level(value: number, most: number): number {
    if (value <= 0 || most <= 0) return 0;
    return Math.min(LEVELS, 1 + Math.floor((Math.log1p(value) / Math.log1p(most)) * (LEVELS - 0.001)));
}

function Squares({ levels, chosen, onChoose, label }: { levels: number[]; chosen: number; onChoose: (i: number) => void; label: string }) {
    const canvas = useRef<HTMLCanvasElement>(null);
    const [width, setWidth] = useState(0);
    const size = levels.length > 400 ? 14 : levels.length > 100 ? 18 : 26;
    const columns = Math.max(1, Math.floor(width / size));
    const height = Math.ceil(levels.length / columns) * size;

    useEffect(() => {
        const parent = canvas.current!.parentElement!;
        const o = new ResizeObserver(() => setWidth(parent.clientWidth));
        o.observe(parent);
        return () => o.disconnect();
    }, []);

    useEffect(() => {
        const c = canvas.current!;
        if (width === 0) return;
        const draw = () => {
            const ratio = devicePixelRatio || 1;
            c.width = width * ratio;
            c.height = height * ratio;
            const g = c.getContext("2d")!, style = getComputedStyle(document.documentElement);
            const colors = Array.from({ length: LEVELS + 1 }, (_, i) => style.getPropertyValue("--heat-" + i).trim());
            g.scale(ratio, ratio);
            levels.forEach((l, i) => {
                g.fillStyle = colors[l]!;
                g.fillRect((i % columns) * size, Math.floor(i / columns) * size, size - 2, size - 2);
            });
            if (chosen >= 0) {
                g.strokeStyle = style.getPropertyValue("--text").trim();
                g.lineWidth = 2;
                g.strokeRect((chosen % columns) * size + 1, Math.floor(chosen / columns) * size + 1, size - 4, size - 4);
            }
        };
        draw();
        const scheme = matchMedia("(prefers-color-scheme: dark)");
        scheme.addEventListener("change", draw);
        addEventListener("queen-theme", draw);
        return () => {
            scheme.removeEventListener("change", draw);
            removeEventListener("queen-theme", draw);
        };
    }, [levels.join(""), width, height, chosen]);

    const at = (e: MouseEvent) => {
        const box = canvas.current!.getBoundingClientRect();
        const x = Math.floor((e.clientX - box.left) / size), i = Math.floor((e.clientY - box.top) / size) * columns + x;
        return x < columns && i < levels.length ? i : -1;
    };
    const onKey = (e: KeyboardEvent) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
        if (step === undefined) return;
        e.preventDefault();
        onChoose(Math.max(0, Math.min(levels.length - 1, chosen < 0 ? 0 : chosen + step)));
    };
    return (
        <div class="heat" tabIndex={0} role="application" aria-label="Map of partitions: arrow keys choose a square" onKeyDown={onKey}>
            <canvas ref={canvas} style={{ width: width + "px", height: height + "px" }} role="img" aria-label={label} onClick={(e) => { const i = at(e); if (i >= 0) onChoose(i); }} />
        </div>
    );
}
