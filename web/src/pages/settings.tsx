// The settings of the server in effect, and where each comes from.
import { useState } from "preact/hooks";
import { usePoll } from "../api";
import { Badge, Card, Empty, Problem, SearchBox, Skeleton } from "../parts/basic";

interface Setting { name: string; value: string; origin: string; unit: string | null; description: string }

export function SettingsPage() {
    const list = usePoll<{ server: string; settings: Setting[] }>("api/v1/system/settings", 0);
    const [search, setSearch] = useState("");
    const [all, setAll] = useState(false);
    const rows = (list.data?.settings ?? []).filter((s) => (all || search || s.origin !== "default") && (s.name + s.description).toLowerCase().includes(search.toLowerCase()));
    return (
        <>
            <div class="page-head"><h1>Settings{list.data?.server && <> of <bdi>{list.data.server}</bdi></>}</h1></div>
            <div class="filters">
                <SearchBox label="Name or description contains" value={search} onChange={setSearch} />
                <label class="flag"><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} />also those with their default</label>
            </div>
            <Card>
                <Problem text={list.error} />
                {!list.data ? (list.error ? null : <Skeleton rows={8} />) : rows.length === 0 ? <Empty>{search ? "No setting matches." : "Every setting has its default."}</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
                        <thead><tr><th>Name</th><th>Value</th><th>From</th><th>Meaning</th></tr></thead>
                        <tbody>{rows.map((s) => (
                            <tr key={s.name}>
                                <td class="mono nowrap">{s.name}</td>
                                <td class="mono"><bdi>{s.value === "" ? "–" : s.value}</bdi>{s.unit && <span class="dim"> {s.unit}</span>}</td>
                                <td><Badge tone={s.origin === "default" ? "idle" : "info"}>{s.origin}</Badge></td>
                                <td class="wide">{s.description}</td>
                            </tr>
                        ))}</tbody>
                    </table></div>
                )}
            </Card>
        </>
    );
}
