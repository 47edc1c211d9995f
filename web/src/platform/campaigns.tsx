// A campaign with the state of each of its triggers.
import { query, request, seg, usePoll } from "../api";
import { count } from "../format";
import { Badge, Card, ConfirmByName, Empty, Opener, Problem, Skeleton, State, Tile, Time } from "../parts/basic";
import { useState } from "preact/hooks";
import { go, link } from "../router";
import { describeWhen } from "./tenants";
import type { Campaign, CampaignRun } from "./types";

const REASONS: Record<string, string> = { blocked: "blocked", noConsent: "without consent", noAddress: "without an address", deleted: "deleted" };

export function CampaignPage({ tenant, id }: { tenant: string; id: string }) {
    const path = `api/v1/tenants/${seg(tenant)}/campaigns/${seg(id)}`;
    const one = usePoll<Campaign>(path, 0);
    const runs = usePoll<{ runs: CampaignRun[] }>(path + "/runs" + query({ limit: 100 }), 3000);
    const [deleting, setDeleting] = useState(false);
    const c = one.data, rows = runs.data?.runs ?? [];
    return (
        <>
            <div class="page-head">
                <h1><a class="crumb" href={link(["tenants", tenant])}><bdi>{tenant}</bdi></a> / <bdi>{c?.name ?? "campaign"}</bdi></h1>
                {c && <div class="buttons"><Opener op="delete_campaign" label="Stop" kind="danger" onClick={() => setDeleting(true)} /></div>}
            </div>
            <Problem text={one.error ?? runs.error} />
            {c && (
                <div class="tiles">
                    <Tile label="Runs" value={count(c.runs)} note={describeWhen(c)} />
                    <Tile label="Segment" value={<bdi>{c.segment}</bdi>} />
                    <Tile label="Queue" value={<bdi>{c.queue}</bdi>} note={"channel: " + c.channel} />
                    <Tile label="Sent" value={count(rows.reduce((n, r) => n + r.sent, 0))} note="in the runs below" />
                </div>
            )}
            <Card title="Triggers, newest first">
                {!runs.data ? <Skeleton rows={4} /> : rows.length === 0 ? <Empty>Not triggered yet.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>Trigger</th><th>Status</th><th>Created</th><th>Finished</th><th class="num">Recipients</th><th class="num">Sent</th><th>Skipped</th></tr></thead>
                        <tbody>{rows.map((r) => (
                            <tr key={r.trigger}>
                                <td class="mono"><bdi>{r.trigger}</bdi></td>
                                <td>{r.status ? <State value={r.status} /> : <Badge tone="idle">{r.statusError ?? "unknown"}</Badge>} {r.status === "RETRYING" && <span class="dim">attempt {(r.attempt ?? 0) + 1} of {r.maxAttempts}, <Time at={r.nextAttemptAt} /></span>}
                                    {r.lastError && <div class="error-text"><bdi>{r.lastError}</bdi></div>}</td>
                                <td><Time at={r.createdAt} exact /></td>
                                <td>{r.finishedAt ? <Time at={r.finishedAt} exact /> : "–"}</td>
                                <td class="num">{count(r.recipients)}</td><td class="num">{count(r.sent)}</td>
                                <td>{Object.entries(r.skipped ?? {}).filter(([, n]) => n > 0).map(([k, n]) => `${count(n)} ${REASONS[k] ?? k}`).join(", ") || "–"}</td>
                            </tr>
                        ))}</tbody>
                    </table></div>
                )}
            </Card>
            {deleting && c && <ConfirmByName title="Stop the campaign" verb="Stop the campaign" name={c.name} onClose={() => setDeleting(false)}
                text="No further run is started. Messages that are in the broker already are delivered." action={async () => { await request("DELETE", path); go(["tenants", tenant]); }} />}
        </>
    );
}
