// Requests to the server that served this page. All paths are relative, so the page works under any path prefix.
import { useEffect, useRef, useState } from "preact/hooks";

export class ApiError extends Error {
    constructor(readonly status: number, message: string) {
        super(message);
    }
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const KEY = "queen.token";
const listeners = new Set<() => void>();

/** The API key or token of this tab. It is kept in session storage: closing the tab forgets it. */
export const token = {
    get: () => sessionStorage.getItem(KEY) ?? "",
    set(value: string) {
        if (value) sessionStorage.setItem(KEY, value);
        else sessionStorage.removeItem(KEY);
        connection.update({ denied: false });
        listeners.forEach((f) => f());
    },
};

/** Whether the last request reached the server, and whether it refused the token. */
export const connection = {
    state: { online: true, denied: false, since: 0 },
    update(change: Partial<{ online: boolean; denied: boolean; since: number }>) {
        const before = this.state;
        this.state = { ...before, ...change };
        if (before.online !== this.state.online || before.denied !== this.state.denied) listeners.forEach((f) => f());
    },
};

/** Redraws the caller when the connection or the token changes. */
export function useConnection() {
    const [, redraw] = useState(0);
    useEffect(() => {
        const f = () => redraw((n) => n + 1);
        listeners.add(f);
        return () => void listeners.delete(f);
    }, []);
    return connection.state;
}

export function query(params: Record<string, string | number | boolean | undefined | null>): string {
    const all = Object.entries(params).filter(([, v]) => v !== undefined && v !== null && v !== "");
    return all.length ? "?" + all.map(([k, v]) => `${encodeURIComponent(k)}=${encodeURIComponent(String(v))}`).join("&") : "";
}

export const seg = encodeURIComponent; // one segment of a path

export async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const headers: Record<string, string> = {};
    if (token.get()) headers["Authorization"] = "Bearer " + token.get();
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let answer: Response;
    try {
        answer = await fetch(path, { method, headers, body: body === undefined ? null : JSON.stringify(body), signal: signal ?? null });
    } catch (e) {
        if ((e as Error).name !== "AbortError") connection.update({ online: false, since: connection.state.online ? Date.now() : connection.state.since });
        throw e;
    }
    connection.update({ online: true });
    const text = await answer.text();
    let data: unknown = null;
    try {
        data = text ? JSON.parse(text) : null;
    } catch {
        // The text itself is the message of the error below.
    }
    if (!answer.ok) {
        if (answer.status === 401) connection.update({ denied: true });
        const known = data as { error?: string } | null;
        throw new ApiError(answer.status, known?.error ?? (text.slice(0, 200) || `HTTP ${answer.status}`));
    }
    return data as T;
}

export const get = <T>(path: string, signal?: AbortSignal) => request<T>("GET", path, undefined, signal);

const SHARE = 100;

/**
 * Tabs of one browser share their answers: whichever asks first hands its answer to the others, so five tabs of a page cost the server as
 * much as one. Only tabs with the same key or token share, and the channel carries a hash of it.
 */
const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("queen") : null;
const waiting = new Map<string, Set<(s: Shared) => void>>();
let sender = "";

/** `at`: when it was asked for; `pause`: after which it is asked for again. */
interface Shared { key: string; data: unknown; at: number; pause: number }

channel?.addEventListener("message", (e: MessageEvent<Shared>) => waiting.get(e.data.key)?.forEach((f) => f(e.data)));

async function updateSender() {
    // Pages of other addresses than https and localhost have no crypto.subtle; with a key they do not share.
    if (!token.get()) sender = "anonymous";
    else if (!globalThis.crypto?.subtle) sender = String(Math.random());
    else sender = [...new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token.get())))].map((b) => b.toString(16)).join(".");
}
void updateSender();
listeners.add(() => { sender = ""; void updateSender(); });

/** The key under which tabs share an answer; "" while it is not known. */
const shareKey = (path: string) => (sender ? sender + " " + new URL(path, document.baseURI).href : "");

function onShared(key: string, take: (s: Shared) => void): () => void {
    const all = waiting.get(key) ?? new Set();
    waiting.set(key, all.add(take));
    return () => {
        all.delete(take);
        if (all.size === 0) waiting.delete(key);
    };
}

export interface Loaded<T> {
    data: T | undefined;
    error: string | undefined;
    reload: () => void;
}

/**
 * Loads `path` now and every `ms` milliseconds while the tab is visible. The last answer stays while a new one is
 * on its way, so figures change in place. A failed request is repeated less and less often, up to every 15 s, and a
 * slow one after SHARE times its duration, or 15 s if that is less.
 */
export function usePoll<T>(path: string | null, ms = 2000): Loaded<T> {
    const [state, setState] = useState<{ path: string | null; data?: T; error?: string }>({ path });
    const [round, setRound] = useState(0);
    const fails = useRef(0);

    useEffect(() => {
        if (path === null) return;
        const stop = new AbortController();
        let timer: ReturnType<typeof setTimeout> | undefined;
        let loading = false, newest = 0, forget = () => {};
        const again = (pause: number) => {
            clearTimeout(timer);
            timer = setTimeout(load, pause);
        };
        const pauseAfter = (begin: number) => Math.min(Math.max(ms * 2 ** Math.min(fails.current, 3), (performance.now() - begin) * SHARE), Math.max(ms, 15000));
        const load = async () => {
            if (document.hidden) {
                timer = undefined;
                return;
            }
            const begin = performance.now(), at = Date.now(), key = ms > 0 ? shareKey(path) : "";
            forget();
            if (key)
                forget = onShared(key, (s) => {
                    if (loading || s.at < newest || stop.signal.aborted || document.hidden || connection.state.denied) return;
                    newest = s.at;
                    fails.current = 0;
                    connection.update({ online: true });
                    setState({ path, data: s.data as T });
                    again(s.pause * (1 + Math.random() / 4)); // so that the tab that asked asks again
                });
            loading = true;
            try {
                const data = await get<T>(path, stop.signal);
                fails.current = 0;
                newest = at;
                setState({ path, data });
                if (key) channel?.postMessage({ key, data, at, pause: pauseAfter(begin) } satisfies Shared);
            } catch (e) {
                if (stop.signal.aborted) return;
                fails.current++;
                setState((s) => ({ path, error: (e as Error).message, ...(s.path === path && s.data !== undefined ? { data: s.data } : {}) }));
            }
            loading = false;
            if (ms <= 0 || stop.signal.aborted) return;
            again(pauseAfter(begin));
        };
        const onVisible = () => {
            if (!document.hidden && timer === undefined) void load();
        };
        document.addEventListener("visibilitychange", onVisible);
        listeners.add(onVisible);
        void load();
        return () => {
            stop.abort();
            forget();
            clearTimeout(timer);
            document.removeEventListener("visibilitychange", onVisible);
            listeners.delete(onVisible);
        };
    }, [path, ms, round]);

    const fresh = state.path === path;
    return { data: fresh ? state.data : undefined, error: fresh ? state.error : undefined, reload: () => setRound((n) => n + 1) };
}

/** The last answer that came, so that a list stays while its next page, order or search is loaded. */
export function useKept<T>(data: T | undefined): T | undefined {
    const kept = useRef<T>();
    if (data !== undefined) kept.current = data;
    return kept.current;
}
