// The address of a view lives behind '#', so the server needs no rule for it and any path prefix works.
import { useEffect, useState } from "preact/hooks";

export interface Place {
    path: string[]; // decoded segments: #/queues/a%2Fb -> ["queues", "a/b"]
    params: URLSearchParams;
}

function decode(text: string): string {
    try {
        return decodeURIComponent(text);
    } catch {
        return text; // a stray '%' typed by a person
    }
}

export function here(): Place {
    const [path = "", params = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    return { path: path.split("/").filter(Boolean).map(decode), params: new URLSearchParams(params) };
}

export function link(path: string[], params: Record<string, string | number | undefined> = {}): string {
    const all = Object.entries(params).filter(([, v]) => v !== undefined && v !== "");
    const text = all.map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`).join("&");
    return "#/" + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

export function go(path: string[], params: Record<string, string | number | undefined> = {}) {
    location.hash = link(path, params);
}

/** Changes parameters of the present view without a new entry in the history. */
export function setParams(change: Record<string, string | number | undefined>) {
    const place = here();
    const all: Record<string, string | number | undefined> = { ...Object.fromEntries(place.params), ...change };
    history.replaceState(null, "", link(place.path, all));
    dispatchEvent(new HashChangeEvent("hashchange"));
}

export function usePlace(): Place {
    const [place, setPlace] = useState(here);
    useEffect(() => {
        const f = () => setPlace(here());
        addEventListener("hashchange", f);
        return () => removeEventListener("hashchange", f);
    }, []);
    return place;
}
