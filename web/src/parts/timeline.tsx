// The history of a message: as a picture on an axis of time, and as a list in words.
import { absolute, ago, clock, duration } from "../format";
import type { TimelineEvent } from "../types";
import type { Tone } from "./basic";

const LABELS: Record<string, [string, Tone]> = {
    pushed: ["Pushed", "idle"], scheduled: ["Scheduled", "info"], delivered: ["Delivered", "info"], completed: ["Completed", "ok"], failed: ["Failed", "bad"],
    retryScheduled: ["Retry scheduled", "warn"], redelivery: ["Delivered again in order", "warn"], triedAgain: ["Tried again", "warn"], deadLettered: ["Dead letter", "bad"],
    redriven: ["Sent again (redrive)", "info"], redrivenToQueue: ["Sent to another queue (redrive)", "info"], retryCancelled: ["Retry cancelled", "idle"],
    leaseExpired: ["Lease expired", "warn"], next: ["Next attempt", "info"], due: ["Due", "info"],
};

const describe = (e: TimelineEvent) => LABELS[e.event] ?? [e.event, "idle" as Tone];

/** The events, followed by what is known about the future: the due time, or the next attempt of each group. */
export function withFuture(events: TimelineEvent[], now: number): TimelineEvent[] {
    const all = [...events], next = new Map<string, TimelineEvent>();
    for (const e of events) {
        // Whatever happens to a group after its retry was scheduled replaces that plan.
        if (e.nextAttemptAt) next.set(e.consumerGroup ?? "", e);
        else if (e.consumerGroup && e.event !== "leaseExpired") next.delete(e.consumerGroup);
    }
    for (const [group, e] of next)
        if (Date.parse(e.nextAttemptAt!) > now)
            all.push({ at: e.nextAttemptAt!, event: group ? "next" : "due", ...(group ? { consumerGroup: group, attempt: e.event === "redriven" ? 1 : (e.attempt ?? 0) + 1 } : {}) });
    return all;
}

/** Positions in percent: gaps grow with the logarithm of their duration, so 20 ms and 3 days fit in one picture. */
function scale(times: number[]): Map<number, number> {
    const sorted = [...new Set(times)].sort((a, b) => a - b), at = new Map<number, number>();
    let sum = 0;
    sorted.forEach((t, i) => {
        if (i > 0) sum += 1 + Math.log10(1 + (t - sorted[i - 1]!) / 100);
        at.set(t, sum);
    });
    for (const [t, x] of at) at.set(t, sum === 0 ? 50 : 3 + (x / sum) * 94);
    return at;
}

/** One line per consumer group: deliveries as bars, waits as dashed lines, the future hollow, and where "now" is. */
export function TimelinePicture({ events, now }: { events: TimelineEvent[]; now: number }) {
    const all = withFuture(events, now);
    if (all.length === 0) return null;
    const groups = [...new Set(all.map((e) => e.consumerGroup).filter((g) => g !== undefined))];
    const lanes = groups.length ? groups : [undefined];
    const last = Math.max(...all.map((e) => Date.parse(e.at)));
    const place = scale([...all.map((e) => Date.parse(e.at)), ...(last > now ? [now] : [])]);
    const x = (e: TimelineEvent) => place.get(Date.parse(e.at)) ?? 0;
    const words = all.map((e) => `${describe(e)[0]} ${clock(e.at)}`).join(", ");
    return (
        <div class="axis" role="img" aria-label={"Timeline: " + words}>
            {lanes.map((group) => {
                const mine = all.filter((e) => e.consumerGroup === undefined || e.consumerGroup === group);
                return (
                    <div class="axis-lane" key={group ?? ""}>
                        <bdi class="axis-name dim">{group === "__QUEUE_MODE__" ? "queue mode" : group}</bdi>
                        <div class="axis-line">
                            {mine.slice(1).map((e, i) => {
                                const before = mine[i]!, working = before.event === "delivered";
                                return <span key={"b" + i} class={"axis-gap " + (working ? (e.event === "failed" ? "bad" : e.event === "completed" ? "ok" : "info") : "wait")} style={{ left: x(before) + "%", width: Math.max(0, x(e) - x(before)) + "%" }} />;
                            })}
                            {last > now && <span class="axis-now" style={{ left: place.get(now) + "%" }} title={"now, " + clock(new Date(now).toISOString())} />}
                            {mine.filter((e) => e.event !== "retryScheduled").map((e, i) => (
                                <span key={i} class={`axis-dot ${describe(e)[1]}${Date.parse(e.at) > now ? " future" : ""}`} style={{ left: x(e) + "%" }}
                                    title={`${describe(e)[0]}${e.attempt ? ", attempt " + e.attempt : ""}, ${absolute(e.at)}${e.error ? ": " + e.error : ""}`} />
                            ))}
                        </div>
                    </div>
                );
            })}
            <div class="axis-ends dim"><span>{clock(all[0]!.at)}</span><span>{clock(new Date(last).toISOString())}{last > now ? ` (${ago(new Date(last).toISOString(), now)})` : ""}</span></div>
        </div>
    );
}

export function TimelineList({ events, now }: { events: TimelineEvent[]; now: number }) {
    const rows = withFuture(events, now);
    return (
        <ol class="timeline">
            {rows.map((e, i) => {
                const [label, tone] = describe(e), before = rows[i - 1], future = Date.parse(e.at) > now;
                const gap = before ? (Date.parse(e.at) - Date.parse(before.at)) / 1000 : 0;
                return (
                    <li key={i} class={tone + (future ? " future" : "")}>
                        <span class="when" title={absolute(e.at)}>{clock(e.at)}<br /><span class="dim">{future ? ago(e.at, now) : before ? "+" + duration(gap) : ""}</span></span>
                        <span class="dot" aria-hidden="true" />
                        <span class="event">
                            <b>{label}</b>
                            {e.attempt !== undefined && e.attempt > 0 && <span class="dim"> attempt {e.attempt}</span>}
                            {e.times !== undefined && e.times > 1 && <span class="dim"> {e.times} times</span>}
                            {e.consumerGroup && <span class="dim"> · <bdi>{e.consumerGroup}</bdi></span>}
                            {e.worker && <span class="dim"> · <bdi>{e.worker}</bdi></span>}
                            {e.targetQueue && <span class="dim"> · to <bdi>{e.targetQueue}</bdi></span>}
                            {e.error && <div class="error-text"><bdi>{e.errorCode ? `${e.errorCode}: ` : ""}{e.error}</bdi></div>}
                        </span>
                    </li>
                );
            })}
        </ol>
    );
}
