// The form that creates or configures a queue. Every option has its explanation beside it.
import { useState } from "preact/hooks";
import { request, type Json } from "../api";
import { Action, Dialog } from "./basic";
import { PolicyForm, type Policy } from "./policy";

interface Option { name: string; label: string; unit?: string; help: string; kind?: "flag"; onlyNew?: boolean }

export const OPTIONS: Option[] = [
    { name: "ordering", label: "Work queue", kind: "flag", help: "Any number of consumers take messages of one partition, and each message is settled on its own. Otherwise messages stay in order." },
    { name: "settlement", label: "Settle each message on its own", kind: "flag", help: "Of an ordered queue: an acknowledgement settles the message it names, not all messages before it. Handlers of one batch can work in parallel." },
    { name: "leaseTime", label: "Lease time", unit: "s", help: "A consumer has this long to acknowledge before its messages are delivered again." },
    { name: "retryLimit", label: "Retry limit", help: "Failed deliveries before a message becomes a dead letter (without a retry policy)." },
    { name: "maxDeliveries", label: "Delivery limit", help: "Deliveries that end without an acknowledgement before a message becomes a dead letter. 0: no limit." },
    { name: "maxInFlight", label: "In flight at most", unit: "messages", help: "Of a work queue: messages that a group has leased and not settled. 0: no limit." },
    { name: "rateLimit", label: "Rate limit", unit: "per second", help: "Of a work queue: deliveries per second to a group. 0: no limit." },
    { name: "rateBurst", label: "Burst", unit: "messages", help: "Deliveries at once after a pause. Empty: the rate limit, rounded up." },
    { name: "keyMaxInFlight", label: "In flight per key", unit: "messages", help: "Of a work queue: likewise, for each concurrency key. 0: no limit." },
    { name: "keyRateLimit", label: "Rate limit per key", unit: "per second", help: "Of a work queue: likewise, for each concurrency key. 0: no limit." },
    { name: "keyRateBurst", label: "Burst per key", unit: "messages", help: "Deliveries at once after a pause. Empty: the rate limit, rounded up." },
    { name: "retryDelay", label: "Retry delay", unit: "ms", help: "A partition waits this long after a failure before it is delivered again (without a retry policy)." },
    { name: "maxSize", label: "Maximum size", unit: "messages", help: "More pending messages than this are refused with 429. 0: no limit." },
    { name: "delayedProcessing", label: "Delay", unit: "s", help: "Messages are delivered this long after they were pushed." },
    { name: "windowBuffer", label: "Window", unit: "s", help: "A partition is delivered after it has been quiet for this long." },
    { name: "ttl", label: "Time to live", unit: "s", help: "Messages expire this long after they were pushed." },
    { name: "maxWaitTimeSeconds", label: "Maximum wait", unit: "s", help: "Messages that wait longer are removed. 0: never." },
    { name: "retentionSeconds", label: "Retention", unit: "s", help: "Messages older than this are removed, consumed or not. 0: never." },
    { name: "completedRetentionSeconds", label: "Retention of consumed messages", unit: "s", help: "Consumed messages older than this are removed. 0: never." },
    { name: "priority", label: "Priority", help: "Higher first in pops by namespace or task." },
    { name: "partitions", label: "Fixed partitions", help: "The queue has exactly these partitions, 0 to N-1, and processors can own them. Cannot be changed later.", onlyNew: true },
    { name: "encryptionEnabled", label: "Encrypt payloads at rest", kind: "flag", help: "Needs QUEEN_ENCRYPTION_KEY on the server. Affects new messages." },
];

function valueOf(o: Option, v: Json | undefined): string | boolean {
    if (o.name === "ordering") return v === "none";
    if (o.name === "settlement") return v === "message";
    return o.kind === "flag" ? v === true : v === undefined || v === null ? "" : String(v);
}

export function ConfigureDialog({ queue, namespace, task, options, onClose, onDone }: { queue?: string; namespace?: string; task?: string; options?: Record<string, Json>; onClose: () => void; onDone: (name: string) => void }) {
    const [name, setName] = useState(queue ?? "");
    const [ns, setNs] = useState(namespace ?? "");
    const [tk, setTk] = useState(task ?? "");
    const [before] = useState(() => Object.fromEntries(OPTIONS.map((o) => [o.name, valueOf(o, options?.[o.name])])));
    const [values, setValues] = useState<Record<string, string | boolean>>(before);
    const [policy, setPolicy] = useState<Policy | undefined>((options?.retryPolicy ?? undefined) as Policy | undefined);
    const save = async () => {
        // The server replaces the whole configuration: options without a field here are sent as they are.
        const sent: Record<string, Json> = { ...options };
        const changed = (...names: string[]) => names.some((n) => values[n] !== before[n]);
        if (changed("retentionSeconds", "completedRetentionSeconds")) delete sent.retentionEnabled; // follows from the times
        for (const o of OPTIONS) {
            const v = values[o.name];
            if (o.name === "ordering") sent.ordering = v === true ? "none" : "partition";
            else if (o.name === "settlement") sent.settlement = v === true ? "message" : "batch";
            else if (o.kind === "flag") sent[o.name] = v === true;
            else if (v === "") delete sent[o.name];
            else sent[o.name] = Number(v);
        }
        if (sent.ordering !== "none") for (const n of ["maxInFlight", "rateLimit", "rateBurst", "keyMaxInFlight", "keyRateLimit", "keyRateBurst"]) delete sent[n]; // only work queues have them
        if (changed("rateLimit") && !changed("rateBurst")) delete sent.rateBurst; // its default depends on the rate
        if (changed("keyRateLimit") && !changed("keyRateBurst")) delete sent.keyRateBurst;
        if (changed("ordering") && !changed("maxDeliveries")) delete sent.maxDeliveries; // its default depends on the ordering
        if (policy) sent.retryPolicy = policy as Json;
        else delete sent.retryPolicy;
        await request("POST", "api/v1/configure", { queue: name, ...(ns ? { namespace: ns } : {}), ...(tk ? { task: tk } : {}), options: sent });
        onDone(name);
        onClose();
    };
    return (
        <Dialog title={queue === undefined ? "New queue" : "Configure " + queue} onClose={onClose}>
            <form class="form" onSubmit={(e) => e.preventDefault()}>
                {queue === undefined && <label>Name<input value={name} onInput={(e) => setName(e.currentTarget.value)} spellcheck={false} /></label>}
                <div class="row2">
                    <label>Namespace<input value={ns} onInput={(e) => setNs(e.currentTarget.value)} spellcheck={false} /></label>
                    <label>Task<input value={tk} onInput={(e) => setTk(e.currentTarget.value)} spellcheck={false} /></label>
                </div>
                {OPTIONS.filter((o) => queue === undefined || !o.onlyNew).map((o) => (
                    <label key={o.name} class={o.kind === "flag" ? "flag" : "option"}>
                        <span>{o.label}{o.unit && <span class="dim"> ({o.unit})</span>}</span>
                        {o.kind === "flag"
                            ? <input type="checkbox" checked={values[o.name] === true} onChange={(e) => setValues({ ...values, [o.name]: e.currentTarget.checked })} />
                            : <input type="number" min="0" step="any" placeholder="default" value={String(values[o.name] ?? "")} onInput={(e) => setValues({ ...values, [o.name]: e.currentTarget.value })} />}
                        <small>{o.help}</small>
                    </label>
                ))}
                <PolicyForm value={policy} onChange={setPolicy} />
            </form>
            <p class="dim">Empty fields get their default.</p>
            <div class="buttons">
                <button type="button" onClick={onClose}>Cancel</button>
                <Action label={queue === undefined ? "Create" : "Save"} kind="primary" disabled={!name} action={save} />
            </div>
        </Dialog>
    );
}
