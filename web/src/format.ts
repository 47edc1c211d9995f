// Figures and times for people.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** 1234 -> "1,234"; 1234567 -> "1.23 M". */
export function count(n: number | null | undefined): string {
    if (n === null || n === undefined || !Number.isFinite(n)) return "–";
    if (Math.abs(n) >= 1e9) return (n / 1e9).toFixed(2) + " G";
    if (Math.abs(n) >= 1e6) return (n / 1e6).toFixed(2) + " M";
    return whole.format(n);
}

export function rate(n: number | null | undefined): string {
    if (n === null || n === undefined || !Number.isFinite(n)) return "–";
    return n >= 100 ? count(n) : n >= 10 ? n.toFixed(1) : n === 0 ? "0" : n.toFixed(2);
}

export function bytes(n: number | null | undefined): string {
    if (n === null || n === undefined || !Number.isFinite(n)) return "–";
    const units = ["B", "kB", "MB", "GB", "TB"];
    let i = 0;
    while (n >= 1000 && i < units.length - 1) {
        n /= 1000;
        i++;
    }
    return (i === 0 ? String(n) : n.toFixed(n < 10 ? 1 : 0)) + " " + units[i];
}

/** Seconds as the two largest units: 93784 -> "1 d 2 h". */
export function duration(s: number | null | undefined): string {
    if (s === null || s === undefined || !Number.isFinite(s)) return "–";
    if (s < 0.000001) return "0 s";
    if (s < 0.001) return Math.round(s * 1e6) + " µs";
    if (s < 1) return Math.round(s * 1000) + " ms";
    if (s < 10) return s.toFixed(1).replace(/\.0$/, "") + " s";
    const units: [string, number][] = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    let rest = Math.round(s);
    const parts: string[] = [];
    for (const [name, size] of units) {
        const n = Math.floor(rest / size);
        rest -= n * size;
        if (n > 0) parts.push(`${n} ${name}`);
        else if (parts.length) break;
        if (parts.length === 2) break;
    }
    return parts.join(" ") || "0 s";
}

/** One unit only, for axes: 95 -> "1.6 min". */
export function durationShort(s: number): string {
    const units: [string, number][] = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    for (const [name, size] of units) if (s >= size) return (s / size).toFixed(s / size >= 10 || s % size === 0 ? 0 : 1) + " " + name;
    return s === 0 ? "0" : s < 0.001 ? Math.round(s * 1e6) + " µs" : Math.round(s * 1000) + " ms";
}

export const millis = (ms: number | null | undefined) => duration(ms === null || ms === undefined ? ms : ms / 1000);

/** "3 min ago", "in 2 h". */
export function ago(time: string | null | undefined, now = Date.now()): string {
    if (!time) return "never";
    const s = (now - Date.parse(time)) / 1000;
    if (!Number.isFinite(s)) return "–";
    if (Math.abs(s) < 1) return "now";
    const text = duration(Math.abs(s) < 60 ? Math.floor(Math.abs(s)) : Math.abs(s)).split(" ").slice(0, 2).join(" ");
    return s > 0 ? text + " ago" : "in " + text;
}

/** The local date and time with the zone, for tooltips and where the exact time matters. */
export function absolute(time: string | null | undefined): string {
    if (!time) return "";
    const d = new Date(time);
    if (!Number.isFinite(d.getTime())) return time;
    return d.toLocaleString("en-GB", { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
}

/** "14:03:07", with the date in front when it is another day. */
export function clock(time: string | null | undefined): string {
    if (!time) return "–";
    const d = new Date(time);
    if (!Number.isFinite(d.getTime())) return time;
    const hms = d.toLocaleTimeString("en-GB");
    return d.toDateString() === new Date().toDateString() ? hms : d.toLocaleDateString("en-GB", { day: "numeric", month: "short" }) + " " + hms;
}

export const plural = (n: number, one: string, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;
