// A JSON value as a collapsible tree. Long texts and large containers are cut, with a button for the rest.
import { useState } from "preact/hooks";
import type { Json } from "../api";

const TEXT = 400; // characters shown of a string
const ITEMS = 100; // members shown of an object or array

function Text({ value }: { value: string }) {
    const [all, setAll] = useState(false);
    const cut = value.length > TEXT && !all;
    return (
        <span class="json-string">
            "<bdi>{cut ? value.slice(0, TEXT) : value}</bdi>"
            {cut && <button type="button" class="quiet" onClick={() => setAll(true)}>… {value.length - TEXT} more characters</button>}
        </span>
    );
}

function Value({ name, value, depth }: { name: string | null; value: Json; depth: number }) {
    const [open, setOpen] = useState(depth < 2);
    const [shown, setShown] = useState(ITEMS);
    const key = name === null ? null : <span class="json-key"><bdi>{name}</bdi>: </span>;
    if (value === null || typeof value !== "object") {
        return (
            <li>
                {key}
                {typeof value === "string" ? <Text value={value} /> : <span class={"json-" + (value === null ? "null" : typeof value)}>{String(value)}</span>}
            </li>
        );
    }
    const entries: [string | null, Json][] = Array.isArray(value) ? value.map((v) => [null, v]) : Object.entries(value);
    const [left, right] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
    if (entries.length === 0) return <li>{key}{left + right}</li>;
    return (
        <li>
            <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
                {key}
                {left}
                {!open && <span class="dim"> {entries.length} {Array.isArray(value) ? "items" : "members"} {right}</span>}
            </button>
            {open && (
                <>
                    <ul>
                        {entries.slice(0, shown).map(([k, v], i) => <Value key={i} name={k} value={v} depth={depth + 1} />)}
                        {entries.length > shown && (
                            <li><button type="button" class="quiet" onClick={() => setShown(shown + 1000)}>… {entries.length - shown} more</button></li>
                        )}
                    </ul>
                    {right}
                </>
            )}
        </li>
    );
}

export function Tree({ value }: { value: Json }) {
    return (
        <ul class="json" tabIndex={0} aria-label="Payload">
            <Value name={null} value={value} depth={0} />
        </ul>
    );
}
