// The frame of all pages: navigation, search, login, connection state.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { token, useConnection, usePoll } from "./api";
import { may, useIdentity } from "./identity";
import { go, link, usePlace } from "./router";
import { Problem, Skeleton } from "./parts/basic";
import { AuditPage } from "./pages/audit";
import { DeadLettersPage } from "./pages/deadletters";
import { GroupsPage } from "./pages/groups";
import { KeysPage } from "./pages/keys";
import { MessagePage } from "./pages/message";
import { SearchPage } from "./pages/search";
import { OverviewPage } from "./pages/overview";
import { ProcessorsPage } from "./pages/processors";
import { QueuePage } from "./pages/queue";
import { QueuesPage } from "./pages/queues";
import { ScheduledPage } from "./pages/scheduled";
import { SettingsPage } from "./pages/settings";
import { StreamsPage } from "./pages/streams";
import { SystemPage } from "./pages/system";
import { TracesPage } from "./pages/traces";
import { CampaignPage } from "./platform/campaigns";
import { SegmentPage } from "./platform/segments";
import { PlatformOverview, PoolsPage, TenantPage, TenantsPage } from "./platform/tenants";
import type { Health } from "./types";
import "./style.css";

interface Page { id: string; label: string; op: string; page: (p: { path: string[] }) => preact.JSX.Element }

const BROKER: Page[] = [
    { id: "", label: "Overview", op: "get_overview", page: OverviewPage },
    { id: "queues", label: "Queues", op: "status_queues", page: ({ path }) => (path[1] === undefined ? <QueuesPage /> : <QueuePage key={path[1]} name={path[1]} />) },
    { id: "groups", label: "Consumer groups", op: "list_groups", page: ({ path }) => <GroupsPage path={path.slice(1)} /> },
    { id: "dead-letters", label: "Dead letters", op: "list_dlq", page: DeadLettersPage },
    { id: "scheduled", label: "Scheduled", op: "list_scheduled", page: ScheduledPage },
    { id: "processors", label: "Processors", op: "list_processors", page: ProcessorsPage },
    { id: "streams", label: "Streams", op: "list_streams", page: StreamsPage },
    { id: "traces", label: "Traces", op: "trace_names", page: ({ path }) => <TracesPage name={path[1]} /> },
    { id: "system", label: "System", op: "status", page: SystemPage },
    { id: "settings", label: "Settings", op: "settings", page: SettingsPage },
    { id: "audit", label: "Audit log", op: "list_audit", page: AuditPage },
    { id: "keys", label: "API keys", op: "list_keys", page: KeysPage },
];

const PLATFORM: Page[] = [
    { id: "", label: "Overview", op: "pools", page: PlatformOverview },
    {
        id: "tenants", label: "Tenants", op: "tenant_list", page: ({ path }) =>
            path[1] === undefined ? <TenantsPage /> : path[2] === "campaigns" ? <CampaignPage key={path.join("/")} tenant={path[1]} id={path[3] ?? ""} /> : path[2] === "segments" ? <SegmentPage key={path.join("/")} tenant={path[1]} name={path[3]} /> : <TenantPage key={path[1]} tenant={path[1]} />,
    },
    { id: "pools", label: "Pools", op: "pools", page: PoolsPage },
    { id: "audit", label: "Audit log", op: "list_audit", page: AuditPage },
];

// The server says in the page which program it is.
const isPlatform = document.documentElement.dataset.product === "platform";
const PAGES = isPlatform ? PLATFORM : BROKER;

function themeNow(): string {
    return localStorage.getItem("queen.theme") ?? "auto";
}

function applyTheme(theme: string) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event("queen-theme"));
}

function ThemeButton() {
    const [theme, setTheme] = useState(themeNow);
    const next = theme === "auto" ? "light" : theme === "light" ? "dark" : "auto";
    return (
        <button type="button" class="quiet" title={`Colours: ${theme}. Change to ${next}.`}
            onClick={() => { localStorage.setItem("queen.theme", next); setTheme(next); applyTheme(next); }}>
            Theme: {theme}
        </button>
    );
}

function Search() {
    const [text, setText] = useState("");
    useEffect(() => {
        const f = (e: KeyboardEvent) => {
            const at = e.target as HTMLElement;
            if (e.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) {
                e.preventDefault();
                document.getElementById("search")?.focus();
            }
        };
        addEventListener("keydown", f);
        return () => removeEventListener("keydown", f);
    }, []);
    return (
        <form role="search" class="find" onSubmit={(e) => { e.preventDefault(); if (text.trim()) go(["search"], { q: text.trim() }); }}>
            <input id="search" type="search" placeholder="Find a message: id, or text of the payload  ( / )" aria-label="Find a message by id, transaction id, correlation id or text of the payload"
                value={text} onInput={(e) => setText(e.currentTarget.value)} spellcheck={false} />
        </form>
    );
}

function Login() {
    const [value, setValue] = useState("");
    return (
        <main class="login">
            <form class="card" onSubmit={(e) => { e.preventDefault(); token.set(value.trim()); }}>
                <h1>Queen</h1>
                <p>This server needs an API key or a token. It stays in this tab and is forgotten when the tab is closed.</p>
                <label>
                    API key or token
                    <input type="password" autocomplete="off" value={value} onInput={(e) => setValue(e.currentTarget.value)} />
                </label>
                {token.get() && <Problem text="The server refused the last key or token." />}
                <div class="buttons"><button type="submit" class="primary" disabled={!value.trim()}>Sign in</button></div>
            </form>
        </main>
    );
}

function App() {
    const place = usePlace();
    const conn = useConnection();
    const health = usePoll<Health>("health", 10000);
    const me = useIdentity();
    const pages = PAGES.filter((p) => may(p.op));
    const section = place.path[0] ?? "";
    // Who may not see the overview begins with the first page that is permitted.
    const current = section === "" ? pages[0] : pages.find((p) => p.id === section);
    const [menu, setMenu] = useState(false); // only on a phone it can be closed
    const isForbidden = !current && PAGES.some((p) => p.id === section);

    useEffect(() => {
        document.title = [place.path[1], current?.label ?? "Message", "Queen"].filter(Boolean).join(" · ");
        document.getElementById("main")?.scrollTo(0, 0);
        setMenu(false);
    }, [place.path.join("/")]);

    if (conn.denied) return <Login />;
    return (
        <div class="frame">
            <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
            <nav class={"menu" + (menu ? " open" : "")} aria-label="Pages"><div class="menu-inner">
                <a class="brand" href={link([])}>
                    <svg viewBox="0 0 16 16" width="22" height="22" aria-hidden="true"><rect width="16" height="16" rx="4" /><path d="M3 11V5l2.5 3L8 4l2.5 4L13 5v6z" /></svg>
                    {isPlatform ? "Queen platform" : "Queen"}
                </a>
                <button type="button" class="menu-toggle" aria-expanded={menu} onClick={() => setMenu(!menu)}>Menu</button>
                <ul>
                    {pages.map((p) => (
                        <li key={p.id}><a href={link(p.id ? [p.id] : [])} aria-current={p === current ? "page" : undefined}>{p.label}</a></li>
                    ))}
                </ul>
                <div class="menu-foot">
                    <span class="dim">{health.data?.version ? `${health.data.server ?? health.data.platform ?? ""} · ${health.data.version}` : "\u00a0"}</span>
                    <ThemeButton />
                    {me.data?.protected && <span class="dim" title={me.data.allow ?? ""}><bdi>{me.data.subject ?? "anonymous"}</bdi> · {me.data.role ?? "rules"}</span>}
                    {token.get() && <button type="button" class="quiet" onClick={() => { token.set(""); location.reload(); }}>Sign out</button>}
                </div>
            </div></nav>
            <div class="body">
                {!isPlatform && <header class="top"><Search /></header>}
                {!conn.online && <p class="banner bad" role="alert">The server does not answer. The page tries again by itself; the figures below are old.</p>}
                {conn.online && health.error && <p class="banner bad" role="alert">The server answers, but it is not healthy: {health.error}</p>}
                {health.data?.warnings?.map((w) => <p key={w} class="banner warn">{w}</p>)}
                <main id="main" tabIndex={-1}>
                    {!me.data ? (me.error && conn.online ? <Problem text={me.error} /> : <Skeleton rows={8} />)
                        : current ? <current.page path={place.path} />
                        : isForbidden ? <p class="empty">This key or token does not permit this page.</p>
                        : !isPlatform && section === "search" ? <SearchPage text={place.params.get("q") ?? ""} />
                        : !isPlatform && section === "message" ? <MessagePage id={place.path[1] ?? ""} />
                        : <p class="empty">There is no such page.</p>}
                </main>
            </div>
        </div>
    );
}

applyTheme(themeNow());
render(<App />, document.getElementById("app")!);
