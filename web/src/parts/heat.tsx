// Many figures as a field of coloured squares, drawn on a canvas: 1 or 100,000 of them.
import { useEffect, useRef, useState } from "preact/hooks";

export interface Cell { name: string; value: number; note: string }

const ROWS = 5; // colours of the scale, by powers of the maximum

export function Heat({ cells, onPick }: { cells: Cell[]; onPick: (name: string) => void }) {
    const canvas = useRef<HTMLCanvasElement>(null);
    const [hover, setHover] = useState<Cell>();
    const [width, setWidth] = useState(0);
    const size = cells.length > 20000 ? 3 : cells.length > 2000 ? 6 : cells.length > 200 ? 12 : 22;
    const columns = Math.max(1, Math.floor(width / size));
    const height = Math.ceil(cells.length / columns) * size;
    const most = cells.reduce((m, c) => Math.max(m, c.value), 0);

    useEffect(() => {
        const c = canvas.current;
        if (!c) return;
        const o = new ResizeObserver(() => setWidth(c.parentElement?.clientWidth ?? 0));
        o.observe(c.parentElement!);
        return () => o.disconnect();
    }, []);

    useEffect(() => {
        const c = canvas.current;
        if (!c || width === 0) return;
        const draw = () => {
            const scale = devicePixelRatio || 1;
            c.width = width * scale;
            c.height = height * scale;
            const g = c.getContext("2d")!;
            const style = getComputedStyle(document.documentElement);
            const colors = Array.from({ length: ROWS + 1 }, (_, i) => style.getPropertyValue("--heat-" + i).trim());
            g.scale(scale, scale);
            const gap = size > 6 ? 2 : size > 3 ? 1 : 0;
            cells.forEach((cell, i) => {
                const level = cell.value <= 0 ? 0 : Math.min(ROWS, 1 + Math.floor((Math.log1p(cell.value) / Math.log1p(most)) * (ROWS - 0.001)));
                g.fillStyle = colors[level] ?? "";
                g.fillRect((i % columns) * size, Math.floor(i / columns) * size, size - gap, size - gap);
            });
        };
        draw();
        addEventListener("queen-theme", draw);
        return () => removeEventListener("queen-theme", draw);
    }, [cells, width, height]);

    const at = (e: MouseEvent) => {
        const box = canvas.current!.getBoundingClientRect();
        const x = Math.floor((e.clientX - box.left) / size), y = Math.floor((e.clientY - box.top) / size);
        return x < columns ? cells[y * columns + x] : undefined;
    };
    return (
        <div class="heat">
            <canvas ref={canvas} style={{ width: width + "px", height: height + "px" }} role="img"
                aria-label={`${cells.length} partitions; the largest backlog is ${most} messages. The table below lists them.`}
                onMouseMove={(e) => setHover(at(e))} onMouseLeave={() => setHover(undefined)} onClick={(e) => { const c = at(e); if (c) onPick(c.name); }} />
            <p class="dim">{hover ? <><bdi>{hover.name}</bdi>: {hover.note}</> : "Point at a square; click to find it in the table."}</p>
        </div>
    );
}
