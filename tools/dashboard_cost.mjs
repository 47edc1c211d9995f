// dashboard_cost.mjs: what open dashboards cost a server, and how soon the first view is there. Needs an idle server.
//
//     build/queen serve --port 6632 --data-dir /tmp/cost &      # then fill it
//     node tools/dashboard_cost.mjs http://localhost:6632/ PID [SECONDS]
//
// PID is the broker. The CPU time of the broker and of all its children (the PostgreSQL that it started) counts. Each line shows five visible tabs of one page.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const require = createRequire(path.join(root, "web/package.json"));
const { default: puppeteer } = await import(require.resolve("puppeteer-core"));
const [base, pid, seconds = "30"] = process.argv.slice(2);
const TABS = 5, HZ = 100;
const PAGES = (process.env.PAGES ?? "#/ #/queues #/groups #/system").split(" ");

/** CPU seconds of a process and its living and dead descendants. */
function cpu() {
    const all = new Map();
    for (const p of readdirSync("/proc").filter((d) => /^\d+$/.test(d))) {
        try {
            const f = readFileSync(`/proc/${p}/stat`, "utf8").replace(/^.*\) /s, "").split(" ").map(Number); // from the state on
            all.set(p, { parent: String(f[1]), own: f[11] + f[12], dead: f[13] + f[14] });
        } catch { /* it has ended */ }
    }
    const sum = (p) => {
        const me = all.get(p);
        return me ? me.own + me.dead + [...all].filter(([, v]) => v.parent === p).reduce((n, [k]) => n + sum(k), 0) : 0;
    };
    return sum(pid) / HZ;
}

const wait = (s) => new Promise((r) => setTimeout(r, s * 1000));
const launch = () => puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: ["--no-sandbox", "--disable-gpu", "--no-first-run"] });

{
    const browser = await launch(), page = await browser.newPage();
    for (const [hash, ready] of [["#/", ".tile-value"], ["#/queues", "tbody tr"]]) {
        const times = [];
        for (let i = 0; i < 5; i++) {
            await page.goto("about:blank");
            const client = await page.createCDPSession();
            await client.send("Network.clearBrowserCache");
            const begin = performance.now();
            await page.goto(base + hash);
            await page.waitForFunction((s) => { const e = document.querySelector(s); return e && !/^[–\s]*$/.test(e.innerText); }, {}, ready);
            times.push(Math.round(performance.now() - begin));
        }
        console.log(`first view of ${hash}: ${times.sort((a, b) => a - b)[2]} ms, median of ${times.join(", ")} ms`);
    }
    await browser.close();
}
let begin = cpu();
await wait(Number(seconds));
console.log(`no tab: ${(((cpu() - begin) / Number(seconds)) * 100).toFixed(2)} % of a core`);
for (const hash of PAGES) {
    const browser = await launch();
    let requests = 0, visible = 0;
    for (let i = 0; i < TABS; i++) {
        const page = await browser.newPage(), client = await page.createCDPSession();
        await client.send("Emulation.setFocusEmulationEnabled", { enabled: true }); // as if each had a window of its own
        page.on("request", () => requests++);
        await page.goto(base + hash);
        await wait(0.3);
    }
    for (const page of await browser.pages()) visible += (await page.evaluate(() => location.protocol.startsWith("http") && !document.hidden)) ? 1 : 0;
    await wait(5);
    requests = 0;
    begin = cpu();
    await wait(Number(seconds));
    console.log(`${visible} tabs of ${hash}: ${(((cpu() - begin) / Number(seconds)) * 100).toFixed(2)} % of a core, ${(requests / Number(seconds)).toFixed(1)} requests per second`);
    await browser.close();
}
