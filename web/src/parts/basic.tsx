// Small parts that all pages use.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { absolute, ago, clock } from "../format";
import { may } from "../identity";

/** The current time, renewed every second, for everything that counts up or down. */
export function useNow(ms = 1000): number {
    const [now, setNow] = useState(Date.now);
    useEffect(() => {
        const t = setInterval(() => setNow(Date.now()), ms);
        return () => clearInterval(t);
    }, [ms]);
    return now;
}

/** Relative time; the tooltip shows the absolute one. */
export function Time({ at, exact }: { at: string | null | undefined; exact?: boolean }) {
    const now = useNow();
    if (!at) return <span class="dim">never</span>;
    return (
        <time dateTime={at} title={absolute(at)}>
            {exact ? `${clock(at)} (${ago(at, now)})` : ago(at, now)}
        </time>
    );
}

export type Tone = "ok" | "warn" | "bad" | "info" | "idle";

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
    return <span class={"badge " + tone}>{children}</span>;
}

const TONES: Record<string, Tone> = {
    completed: "ok", delivered: "ok", processing: "info", retrying: "warn", scheduled: "info", dead_letter: "bad", failed: "bad",
    pending: "idle", stable: "ok", lagging: "warn", dead: "idle", queued: "idle",
};

/** The state of a message or group, always in the same colour. */
export function State({ value }: { value: string }) {
    return <Badge tone={TONES[value.toLowerCase()] ?? "idle"}>{value.toLowerCase().replaceAll("_", " ")}</Badge>;
}

export function Card({ title, side, children, class: extra }: { title?: ComponentChildren; side?: ComponentChildren; children: ComponentChildren; class?: string }) {
    return (
        <section class={"card " + (extra ?? "")}>
            {(title || side) && (
                <header>
                    <h2>{title}</h2>
                    <div class="side">{side}</div>
                </header>
            )}
            {children}
        </section>
    );
}

export function Tile({ label, value, unit, note, tone, href }: { label: string; value: ComponentChildren; unit?: string; note?: ComponentChildren; tone?: Tone | undefined; href?: string }) {
    const inside = (
        <>
            <div class="tile-label">{label}</div>
            <div class="tile-value">
                {value}
                {unit && <span class="unit"> {unit}</span>}
            </div>
            <div class="tile-note">{note ?? "\u00a0"}</div>
        </>
    );
    return href ? <a class={"tile " + (tone ?? "")} href={href}>{inside}</a> : <div class={"tile " + (tone ?? "")}>{inside}</div>;
}

export function Problem({ text }: { text: string | undefined }) {
    return text ? <p class="problem" role="alert">{text}</p> : null;
}

export function Empty({ children }: { children: ComponentChildren }) {
    return <p class="empty">{children}</p>;
}

/** Grey lines with the height of what will appear, so nothing moves when it does. */
export function Skeleton({ rows = 5 }: { rows?: number }) {
    return (
        <div class="skeleton" aria-busy="true" aria-label="Loading">
            {Array.from({ length: rows }, (_, i) => <div key={i} />)}
        </div>
    );
}

/** Runs `action` at a click; disabled meanwhile; shows its error beside the button. Hidden if the sender may not use the operation `op`. */
export function Action({ label, action, kind, disabled, title, op }: { label: string; action: () => Promise<unknown>; op?: string; kind?: "danger" | "primary" | undefined; disabled?: boolean | undefined; title?: string | undefined }) {
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState<string>();
    const alive = useRef(true);
    useEffect(() => () => void (alive.current = false), []);
    const run = async () => {
        setBusy(true);
        setError(undefined);
        try {
            await action();
        } catch (e) {
            if (alive.current) setError((e as Error).message);
        }
        if (alive.current) setBusy(false);
    };
    if (op !== undefined && !may(op)) return null;
    return (
        <span class="action">
            <button type="button" class={kind ?? ""} disabled={busy || disabled} onClick={run} title={title}>{label}</button>
            <Problem text={error} />
        </span>
    );
}

/** A button that opens something; hidden if the sender may not use the operation `op`. */
export function Opener({ label, op, kind, disabled, onClick, title }: { label: ComponentChildren; op: string; kind?: "danger" | "primary"; disabled?: boolean; onClick: () => void; title?: string }) {
    return may(op) ? <button type="button" class={kind ?? ""} disabled={disabled} onClick={onClick} title={title}>{label}</button> : null;
}

/** A field for a local time; the value is milliseconds since 1970, or NaN. */
export function TimeField({ label, value, onChange }: { label: string; value: number; onChange: (ms: number) => void }) {
    const text = Number.isFinite(value) ? new Date(value - new Date(value).getTimezoneOffset() * 60e3).toISOString().slice(0, 19) : "";
    return <label>{label} (local time)<input type="datetime-local" step="1" value={text} onInput={(e) => onChange(e.currentTarget.value ? new Date(e.currentTarget.value).getTime() : NaN)} /></label>;
}

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
    const box = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        const d = box.current;
        d?.showModal();
        return () => d?.close();
    }, []);
    return (
        <dialog ref={box} onCancel={onClose} aria-label={title}>
            <header>
                <h2>{title}</h2>
                <button type="button" class="quiet" onClick={onClose} aria-label="Close">×</button>
            </header>
            {children}
        </dialog>
    );
}

/** A destructive action that needs the name typed. */
export function ConfirmByName({ title, name, text, verb, action, onClose }: { title: string; name: string; text: ComponentChildren; verb: string; action: () => Promise<unknown>; onClose: () => void }) {
    const [typed, setTyped] = useState("");
    return (
        <Dialog title={title} onClose={onClose}>
            <p>{text}</p>
            <label>
                Type <b class="mono">{name}</b> to confirm
                <input value={typed} onInput={(e) => setTyped(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
            </label>
            <div class="buttons">
                <button type="button" onClick={onClose}>Cancel</button>
                <Action label={verb} kind="danger" disabled={typed !== name} action={async () => { await action(); onClose(); }} />
            </div>
        </Dialog>
    );
}

export function Tabs({ value, all, onChange }: { value: string; all: [string, string][]; onChange: (v: string) => void }) {
    return (
        <div class="tabs" role="tablist">
            {all.map(([id, label]) => (
                <button key={id} type="button" role="tab" aria-selected={id === value} onClick={() => onChange(id)}>{label}</button>
            ))}
        </div>
    );
}

export function Pager({ offset, limit, shown, total, onMove }: { offset: number; limit: number; shown: number; total?: number | undefined; onMove: (offset: number) => void }) {
    if (offset === 0 && shown < limit) return null;
    const more = total === undefined ? shown === limit : offset + shown < total;
    return (
        <nav class="pager" aria-label="Pages">
            <button type="button" disabled={offset === 0} onClick={() => onMove(Math.max(0, offset - limit))}>Previous</button>
            <span>{offset + 1}–{offset + shown}{total === undefined ? "" : ` of ${total.toLocaleString("en-US")}`}</span>
            <button type="button" disabled={!more} onClick={() => onMove(offset + limit)}>Next</button>
        </nav>
    );
}

/** The value of a text field, handed on when the person pauses. */
export function SearchBox({ value, onChange, label }: { value: string; onChange: (v: string) => void; label: string }) {
    const [text, setText] = useState(value);
    const timer = useRef<ReturnType<typeof setTimeout>>();
    useEffect(() => setText(value), [value]);
    return (
        <input type="search" class="search" placeholder={label} aria-label={label} value={text} spellcheck={false}
            onInput={(e) => {
                const v = e.currentTarget.value;
                setText(v);
                clearTimeout(timer.current);
                timer.current = setTimeout(() => onChange(v), 250);
            }} />
    );
}
