// The retry policy of a queue: as words, and as a form.
import type { Json } from "../api";
import { duration } from "../format";

export interface Policy { mode?: string; strategy?: string; base?: number; floor?: number; cap?: number; jitter?: number; delays?: number[]; maxAttempts?: number; nonRetryable?: string[]; [key: string]: Json | undefined }

interface Field { name: string; label: string; help: string; strategies?: string[]; unit?: string }

const STRATEGIES: [string, string][] = [["fibonacci", "fibonacci: 10, 10, 20, 30, 50 s …"], ["exponential", "exponential: doubles each time"], ["fixed", "fixed: always the same"], ["list", "list: given delays"]];
const FIELDS: Field[] = [
    { name: "maxAttempts", label: "Attempts", help: "Deliveries in all. After the last one the message becomes a dead letter." },
    { name: "base", label: "First step", unit: "s", help: "The delay that the strategy begins with.", strategies: ["fibonacci", "exponential", "fixed"] },
    { name: "floor", label: "Shortest delay", unit: "s", help: "No delay is shorter." },
    { name: "cap", label: "Longest delay", unit: "s", help: "No delay is longer. The default is 7 days." },
    { name: "jitter", label: "Jitter", unit: "0 to 1", help: "The part of the delay by which it is varied at random, so that messages that failed together are not retried together." },
];

const asPolicy = (v: Json | undefined): Policy | undefined => (v !== null && typeof v === "object" && !Array.isArray(v) ? (v as Policy) : undefined);

/** "Failed messages are retried later, up to 5 deliveries: exponential, from 20 s to 7 d." */
export function describePolicy(v: Json | undefined): string {
    const p = asPolicy(v);
    if (!p) return "A failed message is delivered again in order, up to the retry limit. It holds back its partition until then.";
    const delays = p.strategy === "list" ? `after ${(p.delays ?? []).map((s) => duration(s)).join(", ")}` : p.strategy ? `${p.strategy}${p.base !== undefined ? ", from " + duration(p.base) : ""}${p.cap !== undefined && p.strategy !== "fixed" ? " to " + duration(p.cap) : ""}` : "after the retry delay";
    const how = p.mode === "scheduled" ? "A failed message leaves its partition and is delivered again later" : "A failed message is delivered again in order";
    return `${how}${p.maxAttempts !== undefined ? `, at most ${p.maxAttempts} deliveries` : ""}: ${delays}${p.jitter ? `, varied by ${Math.round(p.jitter * 100)} %` : ""}.` +
        (p.nonRetryable?.length ? ` Not after the errors ${p.nonRetryable.join(", ")}.` : "") + (p.byType ? " Some event types have their own policy." : "");
}

/** Fields for the usual policies. What they do not show (such as byType) stays as it is. */
export function PolicyForm({ value, onChange }: { value: Policy | undefined; onChange: (p: Policy | undefined) => void }) {
    const p = value ?? {}, mode = value ? (value.mode ?? "inline") : "", strategy = p.strategy ?? "";
    const set = (name: string, v: Json | undefined) => {
        const { [name]: _old, ...rest } = p;
        onChange(v === undefined ? rest : { ...rest, [name]: v });
    };
    const number = (t: string) => (t === "" ? undefined : Number(t));
    const list = (t: string) => t.split(",").map((x) => x.trim()).filter(Boolean);
    return (
        <fieldset>
            <legend>Retries</legend>
            <label>When a message fails
                <select value={mode} onChange={(e) => onChange(e.currentTarget.value === "" ? undefined : { ...p, mode: e.currentTarget.value })}>
                    <option value="">deliver it again in order, up to the retry limit</option>
                    <option value="inline">deliver it again in order, with a policy</option>
                    <option value="scheduled">put it aside and deliver it again later</option>
                </select>
            </label>
            {mode !== "" && (
                <>
                    <label>Delays
                        <select value={strategy} onChange={(e) => set("strategy", e.currentTarget.value || undefined)}>
                            <option value="">default</option>{STRATEGIES.map(([id, text]) => <option key={id} value={id}>{text}</option>)}
                        </select>
                    </label>
                    {strategy === "list" && <label class="option"><span>Delays <span class="dim">(s)</span></span><input value={(p.delays ?? []).join(", ")} placeholder="1, 5, 15" onChange={(e) => set("delays", list(e.currentTarget.value).map(Number))} /><small>The last one is used for all further attempts.</small></label>}
                    {FIELDS.filter((f) => !f.strategies || strategy === "" || f.strategies.includes(strategy)).map((f) => (
                        <label key={f.name} class="option"><span>{f.label}{f.unit && <span class="dim"> ({f.unit})</span>}</span>
                            <input type="number" min="0" step="any" placeholder="default" value={String(p[f.name] ?? "")} onInput={(e) => set(f.name, number(e.currentTarget.value))} /><small>{f.help}</small></label>
                    ))}
                    <label class="option"><span>Errors without a retry</span><input value={(p.nonRetryable ?? []).join(", ")} placeholder="none" onChange={(e) => set("nonRetryable", e.currentTarget.value.trim() ? list(e.currentTarget.value) : undefined)} /><small>Values of errorCode, separated by commas.</small></label>
                    {p.byType !== undefined && <p class="dim small">Policies of single event types (byType) are kept.</p>}
                    <p role="status">{describePolicy(p as Json)}</p>
                </>
            )}
        </fieldset>
    );
}
