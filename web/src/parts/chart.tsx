// Line charts over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { durationShort } from "../format";

export interface Line {
    label: string;
    color: "a" | "b" | "c" | "bad";
    values: (number | null)[];
    fill?: boolean;
    bars?: boolean;
}

const HEIGHT = 190;

function css(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const DURATIONS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 1209600]; // steps of the axis, in seconds
const SHORTEST = 600; // seconds: fewer would only stretch the time between two points

/** "14:05", with seconds if the marks are closer than a minute; for ranges over two days "18 Nov". */
function timeLabel(s: number, seconds: number, step: number): string {
    const d = new Date(s * 1000);
    if (step < 60) return d.toLocaleTimeString("en-GB");
    return seconds > 2 * 86400 ? d.toLocaleDateString("en-GB", { day: "numeric", month: "short" }) : d.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** The legend has the last values while the mouse is elsewhere. */
function showLast(u: uPlot | undefined) {
    if (u && u.data[0].length > 0 && (u.cursor.left ?? -1) < 0) u.setLegend({ idx: u.data[0].length - 1 }, false);
}

/** `times` in seconds since 1970, ascending; `range`: what the x axis shows. The chart keeps its size when data change. */
export function Chart({ times, lines, format, label, range }: { times: number[]; lines: Line[]; format: (n: number) => string; label: string; range?: [number, number] | undefined }) {
    const box = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot>();
    const span = useRef(range); // read by the chart when it draws
    span.current = range;
    const latest = useRef({ times, lines }); // for a chart that is drawn again in other colours
    latest.current = { times, lines };
    const shape = lines.map((l) => l.label + l.color).join("|");

    useEffect(() => {
        const element = box.current;
        if (!element) return;
        const draw = () => {
            plot.current?.destroy();
            const axis = { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 }, font: "11px system-ui" };
            plot.current = new uPlot(
                {
                    width: element.clientWidth,
                    height: HEIGHT,
                    cursor: { points: { size: 6 } },
                    legend: { live: true },
                    hooks: { draw: [showLast] }, // uPlot empties the legend when it takes new data
                    scales: { x: { range: (_u, min, max) => span.current ?? [Math.min(min, max - SHORTEST), max] }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
                    axes: [{ ...axis, space: 70, values: (u, all, _i, _space, step) => all.map((v) => timeLabel(v, (u.scales.x?.max ?? 0) - (u.scales.x?.min ?? 0), step)) }, { ...axis, size: 62, ...(format === durationShort ? { incrs: DURATIONS } : {}), values: (_u, all) => all.map((v, i) => (i > 0 && format(v) === format(all[i - 1]!) ? "" : format(v))) }],
                    series: [
                        // The index under the mouse, or of the legend, may be beyond the end of new data: then the value is undefined.
                        { value: (_u, v: number | null | undefined) => (v === null || v === undefined ? "–" : new Date(v * 1000).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })) },
                        ...lines.map((l) => ({
                            label: l.label,
                            stroke: css("--chart-" + l.color),
                            width: 1.5,
                            ...(l.fill ? { fill: css("--chart-" + l.color + "-fill") } : {}),
                            ...(l.bars ? { paths: uPlot.paths.bars!({ size: [0.8, 60], align: 1 }) } : {}),
                            points: { show: (u: uPlot) => !l.bars && u.data[0].length < 3, size: 5 },
                            value: (_u: uPlot, v: number | null | undefined) => (v === undefined || (v === null && !l.bars) ? "–" : format(v ?? 0)),
                        })),
                    ],
                },
                [latest.current.times, ...latest.current.lines.map((l) => l.values)],
                element,
            );
        };
        draw();
        const onLeave = () => showLast(plot.current);
        element.addEventListener("mouseleave", onLeave);
        const size = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
        size.observe(element);
        const scheme = matchMedia("(prefers-color-scheme: dark)");
        scheme.addEventListener("change", draw);
        addEventListener("queen-theme", draw);
        return () => {
            size.disconnect();
            element.removeEventListener("mouseleave", onLeave);
            scheme.removeEventListener("change", draw);
            removeEventListener("queen-theme", draw);
            plot.current?.destroy();
            plot.current = undefined;
        };
    }, [shape]);

    useEffect(() => {
        plot.current?.setData([times, ...lines.map((l) => l.values)]);
    }, [times, lines, range?.[0], range?.[1]]);

    const last = lines.map((l) => `${l.label} ${format(l.values.at(-1) ?? 0)}`).join(", ");
    return <div class="chart" ref={box} role="img" aria-label={`${label}: ${last || "no data"}`} />;
}

/** Text bars as a picture of one line, for rows of tables. */
export function Bar({ part, tone }: { part: number; tone: string }) {
    const width = Math.max(0, Math.min(1, part)) * 100;
    return (
        <svg class={"bar " + tone} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
            <rect class="track" width="100" height="6" rx="2" />
            <rect class="value" width={width} height="6" rx="2" />
        </svg>
    );
}

/** A line without axes, for rows of tables: its shape, not its figures. */
export function Spark({ values, label }: { values: number[]; label: string }) {
    const most = Math.max(1, ...values), step = 80 / Math.max(1, values.length - 1);
    const points = values.map((v, i) => `${(i * step).toFixed(1)},${(17 - (v / most) * 16).toFixed(1)}`).join(" ");
    return (
        <svg class="spark" viewBox="0 0 80 18" preserveAspectRatio="none" role="img" aria-label={label}>
            <title>{label}</title>
            <polyline points={points} />
        </svg>
    );
}
