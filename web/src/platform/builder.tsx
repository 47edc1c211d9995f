// The editor of a segment's filter: a tree of AND, OR and NOT over attributes of customers.
import { useState } from "preact/hooks";
import type { Json } from "../api";
import type { Attribute, Catalogue, Filter } from "./types";

const NUMBERS = new Set(["integer", "number", "integers"]);

/** The value that the form's texts mean for this attribute and operator. */
function parse(type: string, kind: string, texts: string[]): Json {
    const one = (t: string): Json => (NUMBERS.has(type) ? (t.trim() === "" ? 0 : Number(t)) : type === "boolean" ? t === "true" : t);
    if (kind === "days") return Number(texts[0] ?? 30) || 0;
    if (kind === "two") return [one(texts[0] ?? ""), one(texts[1] ?? "")];
    if (kind === "list") return (texts[0] ?? "").split(",").map((t) => t.trim()).filter(Boolean).map(one);
    return one(texts[0] ?? "");
}

function texts(value: Json | undefined, kind: string): string[] {
    if (kind === "list") return [Array.isArray(value) ? value.map(String).join(", ") : ""];
    if (kind === "two") return Array.isArray(value) ? value.map(String) : ["", ""];
    return [value === undefined || value === null ? "" : String(value)];
}

export function leaf(a: Attribute): Filter {
    const operator = a.operators[0]!;
    return { attribute: a.name, operator, ...(operator.startsWith("is_") ? {} : { value: a.type === "boolean" ? true : NUMBERS.has(a.type) && !["any", "all", "none"].includes(operator) ? 0 : a.type.endsWith("s") ? [] : "" }) };
}

function Leaf({ filter, catalogue, onChange }: { filter: Extract<Filter, { attribute: string }>; catalogue: Catalogue; onChange: (f: Filter) => void }) {
    const [search, setSearch] = useState("");
    const attribute = catalogue.attributes.find((a) => a.name === filter.attribute);
    const operator = catalogue.operators.find((o) => o.name === filter.operator);
    const kind = operator?.value ?? "one", type = attribute?.type ?? "text";
    const shown = catalogue.attributes.filter((a) => a.name === filter.attribute || (a.label + a.name).toLowerCase().includes(search.toLowerCase()));
    const tables = [...new Set(shown.map((a) => a.table))];
    const field = type === "date" && kind !== "days" ? "date" : kind === "days" || (NUMBERS.has(type) && kind !== "list") ? "number" : "text";
    const now = texts(filter.value, kind);
    const set = (i: number, t: string) => {
        const next = [...now];
        next[i] = t;
        onChange({ ...filter, value: parse(type, kind, next) });
    };
    return (
        <span class="leaf">
            <input type="search" class="narrow" placeholder="find" aria-label="Find an attribute" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
            <select aria-label="Attribute" value={filter.attribute} onChange={(e) => onChange(leaf(catalogue.attributes.find((a) => a.name === e.currentTarget.value)!))}>
                {tables.map((t) => <optgroup key={t} label={t}>{shown.filter((a) => a.table === t).map((a) => <option key={a.name} value={a.name}>{a.label}</option>)}</optgroup>)}
            </select>
            <select aria-label="Operator" value={filter.operator} onChange={(e) => {
                const next = catalogue.operators.find((o) => o.name === e.currentTarget.value)!;
                const { value: _old, ...rest } = filter;
                onChange({ ...rest, operator: next.name, ...(next.value === "none" ? {} : { value: parse(type, next.value, texts(filter.value, kind)) }) });
            }}>
                {(attribute?.operators ?? []).map((o) => <option key={o} value={o}>{catalogue.operators.find((x) => x.name === o)?.label ?? o}</option>)}
            </select>
            {kind !== "none" && (type === "boolean"
                ? <select aria-label="Value" value={String(filter.value)} onChange={(e) => set(0, e.currentTarget.value)}><option value="true">yes</option><option value="false">no</option></select>
                : <input type={field} aria-label="Value" value={now[0] ?? ""} placeholder={kind === "list" ? "a, b, c" : kind === "days" ? "days" : ""} onInput={(e) => set(0, e.currentTarget.value)} />)}
            {kind === "two" && <>and <input type={field} aria-label="Upper value" value={now[1] ?? ""} onInput={(e) => set(1, e.currentTarget.value)} /></>}
            {attribute?.withinDays && (
                <label class="flag">within
                    <input type="number" min="1" class="narrow" placeholder="ever" aria-label="Within days" value={filter.withinDays ?? ""} onInput={(e) => {
                        const { withinDays: _old, ...rest } = filter;
                        onChange(e.currentTarget.value ? { ...rest, withinDays: Number(e.currentTarget.value) } : rest);
                    }} /> days
                </label>
            )}
        </span>
    );
}

/** One node of the tree. A node can be wrapped into NOT or a group, and removed from its group. */
export function Node({ filter, catalogue, onChange, onRemove }: { filter: Filter; catalogue: Catalogue; onChange: (f: Filter) => void; onRemove?: () => void }) {
    const first = catalogue.attributes[0]!;
    const tools = (
        <span class="node-tools">
            {!("not" in filter) && !("all" in filter) && <button type="button" class="quiet" onClick={() => onChange({ not: filter })}>not</button>}
            {"not" in filter && <button type="button" class="quiet" onClick={() => onChange(filter.not)}>remove not</button>}
            {"attribute" in filter && <button type="button" class="quiet" onClick={() => onChange({ and: [filter, leaf(first)] })}>group</button>}
            {onRemove && <button type="button" class="quiet" aria-label="Remove" onClick={onRemove}>×</button>}
        </span>
    );
    if ("all" in filter)
        return <div class="node"><b>Everybody</b> <button type="button" onClick={() => onChange(leaf(first))}>Add a condition</button>{tools}</div>;
    if ("attribute" in filter) return <div class="node"><Leaf filter={filter} catalogue={catalogue} onChange={onChange} />{tools}</div>;
    if ("not" in filter) return <div class="node group not"><b>Not</b><Node filter={filter.not} catalogue={catalogue} onChange={(f) => onChange({ not: f })} />{tools}</div>;
    const word = "and" in filter ? "and" : "or";
    const parts = "and" in filter ? filter.and : filter.or;
    const make = (list: Filter[], w = word): Filter => (list.length === 0 ? { all: true } : list.length === 1 ? list[0]! : w === "and" ? { and: list } : { or: list });
    return (
        <div class="node group">
            <select aria-label="All or any" value={word} onChange={(e) => onChange(make(parts, e.currentTarget.value as "and"))}>
                <option value="and">all of</option><option value="or">any of</option>
            </select>
            {parts.map((p, i) => <Node key={i} filter={p} catalogue={catalogue} onChange={(f) => onChange(make(parts.map((x, j) => (j === i ? f : x))))} onRemove={() => onChange(make(parts.filter((_, j) => j !== i)))} />)}
            <button type="button" onClick={() => onChange(make([...parts, leaf(first)]))}>Add a condition</button>
            {tools}
        </div>
    );
}
