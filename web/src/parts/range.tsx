// The range of charts: a choice of four, kept in the address.
import { setParams, usePlace } from "../router";
import { useMemo } from "preact/hooks";
import { useNow } from "./basic";

const RANGES: Record<string, number> = { "1h": 3600, "6h": 6 * 3600, "24h": 86400, "7d": 7 * 86400 };

/** Parameters `from` and `to` for the server. They move once a minute, as the recorded figures do. */
export function useRange(): { name: string; from: string; to: string } {
    const { params } = usePlace();
    const name = params.get("range") ?? "1h";
    const minute = Math.floor(useNow(15000) / 60000);
    return useMemo(() => {
        const to = (minute + 1) * 60000;
        return { name, from: new Date(to - (RANGES[name] ?? 3600) * 1000).toISOString(), to: new Date(to).toISOString() };
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
