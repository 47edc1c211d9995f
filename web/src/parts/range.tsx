// The range of charts: a choice of four, kept in the address.
import { useMemo } from "preact/hooks";
import { query, usePoll } from "../api";
import { setParams, usePlace } from "../router";
import { useNow } from "./basic";
import type { Line } from "./chart";

const INTERVALS: Record<string, string> = { "6h": "5minutes", "24h": "15minutes", "7d": "hour" }; // of status/analytics
const RANGES: Record<string, number> = { "1h": 3600, "6h": 6 * 3600, "24h": 86400, "7d": 7 * 86400 };

/** Parameters `from` and `to` for the server. They move once a minute, as the recorded figures do. */
export function useRange(): { name: string; from: string; to: string; seconds: [number, number]; interval: string } {
    const { params } = usePlace();
    const name = params.get("range") ?? "1h";
    const minute = Math.floor(useNow(15000) / 60000);
    return useMemo(() => {
        const to = (minute + 1) * 60000;
        const from = to - (RANGES[name] ?? 3600) * 1000;
        return { name, from: new Date(from).toISOString(), to: new Date(to).toISOString(), seconds: [from / 1000, to / 1000], interval: INTERVALS[name] ?? "minute" };
    }, [name, minute]);
}

export function RangePicker() {
    const { name } = useRange();
    return (
        <div class="segmented" role="group" aria-label="Time range">
            {Object.keys(RANGES).map((r) => (
                <button key={r} type="button" aria-pressed={r === name} onClick={() => setParams({ range: r })}>{r}</button>
            ))}
        </div>
    );
}

interface Point { timestamp: string; pending: number | null; deadLetter: number | null; maxLagSeconds: number | null; retries: number | null; buffered: number | null }

interface History { times: number[]; backlog: Line[]; age: Line[]; dead: Line[]; retries: Line[]; buffered: Line[]; growth: number | undefined }

/** Figures over the chosen range, of one queue or of all. A minute without a record continues the one before. */
export function useHistory(queue?: string): History {
    const range = useRange();
    const points = usePoll<{ dataPoints: Point[] }>("api/v1/status/analytics" + query({ queue, interval: range.interval, from: range.from, to: range.to }), 15000);
    return useMemo(() => {
        let last: Point | undefined, retries: number | null = null, buffered: number | null = null;
        const kept: Point[] = [], now = Date.now();
        for (const p of points.data?.dataPoints ?? []) {
            if (p.pending !== null) last = p;
            retries = p.retries ?? retries;
            buffered = p.buffered ?? buffered;
            if (last && Date.parse(p.timestamp) <= now) kept.push({ ...last, retries, buffered, timestamp: p.timestamp });
        }
        const of = (f: (p: Point) => number | null) => kept.map(f), first = kept[0]?.pending, end = kept.at(-1)?.pending;
        return {
            times: kept.map((p) => Date.parse(p.timestamp) / 1000),
            backlog: [{ label: "pending", color: "a", fill: true, values: of((p) => p.pending) }],
            age: [{ label: "oldest", color: "c", values: of((p) => p.maxLagSeconds) }],
            dead: [{ label: "dead letters", color: "bad", values: of((p) => p.deadLetter) }],
            retries: [{ label: "waiting", color: "c", fill: true, values: of((p) => p.retries) }],
            buffered: [{ label: "buffered", color: "a", fill: true, values: of((p) => p.buffered) }],
            growth: kept.length > 1 && typeof first === "number" && typeof end === "number" ? end - first : undefined,
        };
    }, [points.data]);
}
