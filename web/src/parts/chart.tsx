// Line charts over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

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

const SHORTEST = 600; // seconds: fewer would only stretch the time between two points

/** "14:05"; for ranges over two days "18 Nov". */
function timeLabel(s: number, seconds: number): string {
    const d = new Date(s * 1000);
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
                    scales: { x: { range: (_u, min, max) => span.current ?? [Math.min(min, max - SHORTEST), max] }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
                    axes: [{ ...axis, values: (_u, all) => all.map((v) => timeLabel(v, (span.current?.[1] ?? times.at(-1) ?? 0) - (span.current?.[0] ?? times[0] ?? 0))) }, { ...axis, size: 62, values: (_u, all) => all.map((v) => format(v)) }],
                    series: [
                        { value: (_u, v) => (v === null ? "–" : new Date(v * 1000).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })) },
                        ...lines.map((l) => ({
                            label: l.label,
                            stroke: css("--chart-" + l.color),
                            width: 1.5,
                            ...(l.fill ? { fill: css("--chart-" + l.color + "-fill") } : {}),
                            ...(l.bars ? { paths: uPlot.paths.bars!({ size: [0.8, 60] }) } : {}),
                            points: { show: !l.bars && times.length < 3, size: 5 },
                            value: (_u: uPlot, v: number | null) => (v === null ? "–" : format(v)),
                        })),
                    ],
                },
                [times, ...lines.map((l) => l.values)],
                element,
            );
            showLast(plot.current);
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
        showLast(plot.current);
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
