// API keys: list, create, revoke. The secret of a new key is shown once.
import { useState } from "preact/hooks";
import { request, seg, usePoll } from "../api";
import { may } from "../identity";
import { Action, Badge, Card, ConfirmByName, Dialog, Empty, Opener, Problem, Skeleton, Time } from "../parts/basic";

interface ApiKey { id: string; name: string; role: string | null; allow: string | null; createdAt: string; createdBy: string | null; expiresAt: string | null; expired: boolean }

const ROLES: [string, string][] = [
    ["read-only", "read-only: lists, reports and messages"],
    ["read-write", "read-write: also push, pop and acknowledge"],
    ["admin", "admin: everything"],
    ["", "rules: only some operations on some queues"],
];
const DAY = 86400;
const EXPIRIES: [number, string][] = [[30 * DAY, "in 30 days"], [90 * DAY, "in 90 days"], [365 * DAY, "in a year"], [0, "never"]];

export function KeysPage() {
    const list = usePoll<{ keys: ApiKey[] }>("api/v1/keys", 5000);
    const [creating, setCreating] = useState(false);
    const [revoking, setRevoking] = useState<ApiKey>();
    return (
        <>
            <div class="page-head">
                <h1>API keys</h1>
                <Opener op="create_key" label="New key" kind="primary" onClick={() => setCreating(true)} />
            </div>
            <Card>
                <Problem text={list.error} />
                {!list.data ? (list.error ? null : <Skeleton rows={4} />) : list.data.keys.length === 0 ? <Empty>No key yet. The key of QUEEN_ADMIN_KEY_FILE is not listed.</Empty> : (
                    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
                        <table>
                            <thead><tr><th>Name</th><th>May</th><th>Created</th><th>By</th><th>Expires</th><th><span class="sr">Actions</span></th></tr></thead>
                            <tbody>{list.data.keys.map((k) => (
                                <tr key={k.id}>
                                    <td title={"id " + k.id}>{k.name}</td>
                                    <td>{k.role ? <Badge tone={k.role === "admin" ? "warn" : "idle"}>{k.role}</Badge> : <code class="mono"><bdi>{k.allow}</bdi></code>}</td>
                                    <td><Time at={k.createdAt} /></td>
                                    <td>{k.createdBy ? <bdi>{k.createdBy}</bdi> : "–"}</td>
                                    <td>{k.expired ? <Badge tone="bad">expired</Badge> : <Time at={k.expiresAt} />}</td>
                                    <td class="num">{may("revoke_key") && <button type="button" class="danger" onClick={() => setRevoking(k)} aria-label={"Revoke " + k.name}>Revoke</button>}</td>
                                </tr>
                            ))}</tbody>
                        </table>
                    </div>
                )}
            </Card>
            {creating && <CreateDialog onClose={() => { setCreating(false); list.reload(); }} />}
            {revoking && <ConfirmByName title="Revoke API key" verb="Revoke the key" name={revoking.name} onClose={() => setRevoking(undefined)}
                text={<>Requests with this key are refused at once. Programs that use it stop working, and it cannot be restored.</>}
                action={async () => { await request("DELETE", "api/v1/keys/" + seg(revoking.id)); list.reload(); }} />}
        </>
    );
}

function CreateDialog({ onClose }: { onClose: () => void }) {
    const [name, setName] = useState("");
    const [role, setRole] = useState("read-write");
    const [allow, setAllow] = useState("");
    const [expiry, setExpiry] = useState(90 * DAY);
    const [made, setMade] = useState<{ key: string; name: string }>();
    const create = async () =>
        setMade(await request("POST", "api/v1/keys", { name: name.trim(), ...(role ? { role } : { allow: allow.trim() }), expiresInSeconds: expiry || null }));
    if (made)
        return (
            <Dialog title={"Key " + made.name} onClose={onClose}>
                <p>Copy the key now. It is stored only as a hash, so it cannot be shown again.</p>
                <label>
                    Key
                    <input class="mono" readOnly value={made.key} onFocus={(e) => e.currentTarget.select()} />
                </label>
                <p class="dim">Send it as <code class="mono">Authorization: Bearer …</code>, or set <code class="mono">QUEEN_TOKEN</code> for the command line.</p>
                <div class="buttons"><button type="button" class="primary" onClick={onClose}>Done</button></div>
            </Dialog>
        );
    return (
        <Dialog title="New API key" onClose={onClose}>
            <label>
                Name
                <input value={name} onInput={(e) => setName(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
            </label>
            <label>
                May
                <select value={role} onChange={(e) => setRole(e.currentTarget.value)}>{ROLES.map(([id, text]) => <option key={id} value={id}>{text}</option>)}</select>
            </label>
            {role === "" && (
                <label>
                    Rules, for example <code class="mono">push:orders.*,pop:orders.*</code>
                    <input class="mono" value={allow} onInput={(e) => setAllow(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
                </label>
            )}
            <label>
                Expires
                <select value={expiry} onChange={(e) => setExpiry(Number(e.currentTarget.value))}>{EXPIRIES.map(([s, text]) => <option key={s} value={s}>{text}</option>)}</select>
            </label>
            <div class="buttons">
                <button type="button" onClick={onClose}>Cancel</button>
                <Action label="Create" kind="primary" disabled={!name.trim() || (role === "" && !allow.trim())} action={create} />
            </div>
        </Dialog>
    );
}
