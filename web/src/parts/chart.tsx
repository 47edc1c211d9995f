// Line charts over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Line {
    label: string;
    color: "a" | "b" | "c" | "bad";
    values: (number | null)[];
    fill?: boolean;
}

const HEIGHT = 190;

function css(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** "14:05"; for ranges over two days "18 Nov". */
function timeLabel(s: number, times: number[]): string {
    const d = new Date(s * 1000), long = (times.at(-1) ?? 0) - (times[0] ?? 0) > 2 * 86400;
    return long ? d.toLocaleDateString("en-GB", { day: "numeric", month: "short" }) : d.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** `times` in seconds since 1970, ascending. The chart keeps its size when data change. */
export function Chart({ times, lines, format, label }: { times: number[]; lines: Line[]; format: (n: number) => string; label: string }) {
    const box = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot>();
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
                    scales: { y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
                    axes: [{ ...axis, values: (_u, all) => all.map((v) => timeLabel(v, times)) }, { ...axis, size: 62, values: (_u, all) => all.map((v) => format(v)) }],
                    series: [
                        { value: (_u, v) => (v === null ? "–" : new Date(v * 1000).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })) },
                        ...lines.map((l) => ({
                            label: l.label,
                            stroke: css("--chart-" + l.color),
                            width: 1.5,
                            ...(l.fill ? { fill: css("--chart-" + l.color + "-fill") } : {}),
                            points: { show: times.length < 3, size: 5 },
                            value: (_u: uPlot, v: number | null) => (v === null ? "–" : format(v)),
                        })),
                    ],
                },
                [times, ...lines.map((l) => l.values)],
                element,
            );
        };
        draw();
        const size = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
        size.observe(element);
        const scheme = matchMedia("(prefers-color-scheme: dark)");
        scheme.addEventListener("change", draw);
        addEventListener("queen-theme", draw);
        return () => {
            size.disconnect();
            scheme.removeEventListener("change", draw);
            removeEventListener("queen-theme", draw);
            plot.current?.destroy();
            plot.current = undefined;
        };
    }, [shape]);

    useEffect(() => plot.current?.setData([times, ...lines.map((l) => l.values)]), [times, lines]);

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
