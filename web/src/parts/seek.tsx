// Moves a consumer group on a queue, after showing what that means.
import { useState } from "preact/hooks";
import { query, request, seg, usePoll } from "../api";
import { count, plural } from "../format";
import type { GroupRow } from "../types";
import { Action, Dialog, Problem, TimeField } from "./basic";

interface Preview { partitions: number; partitionsBack: number; partitionsAhead: number; again: number; skipped: number; waiting: number; leases: number }
type To = "begin" | "time" | "end";
const CHOICES: [To, string][] = [["begin", "The first stored message"], ["time", "A time"], ["end", "The end"]];

export function SeekDialog({ group, onClose }: { group: GroupRow; onClose: () => void }) {
    const [to, setTo] = useState<To>("time");
    const [time, setTime] = useState(() => Math.floor((Date.now() - 3600e3) / 1000) * 1000);
    const path = `api/v1/consumer-groups/${seg(group.name)}/queues/${seg(group.queueName)}/seek`;
    const valid = to !== "time" || Number.isFinite(time);
    const timestamp = to === "begin" ? "1970-01-01T00:00:00Z" : valid ? new Date(time).toISOString() : "";
    const preview = usePoll<Preview>(valid ? path + query(to === "end" ? { toEnd: true } : { timestamp }) : null, 3000);
    const p = preview.data;
    const act = async () => {
        await request("POST", path, to === "end" ? { toEnd: true } : { timestamp });
        onClose();
    };
    return (
        <Dialog title={`Move ${group.name === "__QUEUE_MODE__" ? "queue mode" : group.name} on ${group.queueName}`} onClose={onClose}>
            <fieldset>
                <legend>New position</legend>
                {CHOICES.map(([v, label]) => <label key={v} class="flag"><input type="radio" name="to" checked={to === v} onChange={() => setTo(v)} />{label}</label>)}
                {to === "time" && <TimeField label="Behind the last message pushed until" value={time} onChange={setTime} />}
            </fieldset>
            <Problem text={preview.error} />
            <ul class="preview" aria-live="polite">
                <li>{p ? <b class={p.again ? "warn-text" : ""}>{plural(p.again, "message")}</b> : "…"} delivered again{p && p.again > 0 && ` on ${plural(p.partitionsBack, "partition")}`}</li>
                <li>{p ? <b class={p.skipped ? "bad-text" : ""}>{plural(p.skipped, "message")}</b> : "…"} skipped and never delivered to this group{p && p.skipped > 0 && ` on ${plural(p.partitionsAhead, "partition")}`}</li>
                <li>{p ? <b>{plural(p.waiting, "message")}</b> : "…"} waiting afterwards, now {count(group.totalLag)}</li>
                <li>{p ? <b>{plural(p.leases, "lease")}</b> : "…"} ended: consumers that acknowledge under them get an error</li>
            </ul>
            <div class="buttons"><button type="button" onClick={onClose}>Cancel</button><Action label="Move the group" kind={to === "end" ? "danger" : "primary"} disabled={!valid} action={act} /></div>
        </Dialog>
    );
}
