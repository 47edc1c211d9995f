// The audit log: administrative actions and denied requests, newest first.
import { useState } from "preact/hooks";
import { query, usePoll, type Json } from "../api";
import { count } from "../format";
import { Badge, Card, Empty, Problem, SearchBox, Skeleton, Time } from "../parts/basic";
import { setParams, usePlace } from "../router";

interface Entry { id: number; at: string; subject: string | null; address: string | null; operation: string; method: string; path: string; target: string | null; status: number; result: string; count: number; detail: Json; server: string }

const FIELDS: [string, string][] = [["subject", "Sender"], ["operation", "Operation"], ["target", "Target"]];

export function AuditPage() {
    const { params } = usePlace();
    const [before, setBefore] = useState<number[]>([]);
    const filter = Object.fromEntries(["subject", "operation", "target", "result"].map((k) => [k, params.get(k) ?? ""]));
    const page = usePoll<{ records: Entry[]; next: number | null }>("api/v1/audit" + query({ ...filter, before: before.at(-1), limit: 100 }), before.length ? 0 : 5000);
    const rows = page.data?.records ?? [];
    const set = (k: string, v: string) => { setBefore([]); setParams({ [k]: v || undefined }); };
    return (
        <>
            <div class="page-head"><h1>Audit log</h1></div>
            <div class="filters">
                {FIELDS.map(([k, label]) => <SearchBox key={k} label={label} value={filter[k]!} onChange={(v) => set(k, v)} />)}
                <select aria-label="Result" value={filter.result} onChange={(e) => set("result", e.currentTarget.value)}>
                    <option value="">every result</option>{["ok", "failed", "denied"].map((r) => <option key={r} value={r}>{r}</option>)}
                </select>
            </div>
            <Card>
                <Problem text={page.error} />
                {!page.data ? (page.error ? null : <Skeleton rows={8} />) : rows.length === 0 ? <Empty>No record.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>When</th><th>Sender</th><th>Operation</th><th>Target</th><th>Result</th><th class="num">Times</th><th>Detail</th></tr></thead>
                        <tbody>{rows.map((r) => (
                            <tr key={r.id}>
                                <td class="nowrap"><Time at={r.at} exact /></td>
                                <td><bdi>{r.subject ?? "anonymous"}</bdi> <span class="dim">{r.address}</span></td>
                                <td><span title={`${r.method} ${r.path}`}>{r.operation}</span></td>
                                <td><bdi>{r.target ?? "–"}</bdi></td>
                                <td><Badge tone={r.result === "ok" ? "ok" : r.result === "denied" ? "bad" : "warn"}>{r.result}</Badge> <span class="dim">{r.status}</span></td>
                                <td class="num">{count(r.count)}</td>
                                <td class="wide mono"><bdi>{r.detail === null ? "" : JSON.stringify(r.detail)}</bdi></td>
                            </tr>
                        ))}</tbody>
                    </table></div>
                )}
                <nav class="pager" aria-label="Pages">
                    <button type="button" disabled={before.length === 0} onClick={() => setBefore(before.slice(0, -1))}>Newer</button>
                    <button type="button" disabled={!page.data?.next} onClick={() => setBefore([...before, page.data!.next!])}>Older</button>
                </nav>
            </Card>
        </>
    );
}
