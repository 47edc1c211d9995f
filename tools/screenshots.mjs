// screenshots.mjs: pictures of every page of the dashboard, from the demo data.
//
//     make demo                                      # in another terminal; wait for "Running"
//     node tools/screenshots.mjs [FOLDER]            # docs/images
//     node tools/screenshots.mjs --all /tmp/shots    # also dark, and as wide as a phone; ONLY=part-of-a-name: some pages
//
// BROKER_URL and PLATFORM_URL replace http://localhost:6632/ and http://localhost:6642/.
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const require = createRequire(path.join(root, "web/package.json"));
const { default: puppeteer } = await import(require.resolve("puppeteer-core"));
const all = process.argv.includes("--all");
const folder = process.argv.slice(2).find((a) => !a.startsWith("--")) ?? path.join(root, "docs/images");
const only = process.env.ONLY; // part of a name, while a page is being worked on
const BROKER = process.env.BROKER_URL ?? "http://localhost:6632/";
const PLATFORM = process.env.PLATFORM_URL ?? "http://localhost:6642/";

const ask = async (base, what, body) => {
    const answer = await fetch(base + what, body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {});
    if (!answer.ok) throw new Error(`${what}: ${answer.status} ${await answer.text()}`);
    return answer.json();
};

// A message that has failed, with as many attempts as there are, and still waits for its next one.
const retries = async () => (await ask(BROKER, "api/v1/scheduled?kind=retry&limit=1000&from=" + new Date(Date.now() + 20000).toISOString())).scheduled;
const waiting = async () => {
    const retry = (await retries()).sort((a, b) => (b.attempt ?? 0) - (a.attempt ?? 0))[0];
    return retry && (await ask(BROKER, `api/v1/messages/timeline?queue=${retry.queue}&transactionId=${encodeURIComponent(retry.transactionId)}`)).messages[0];
};
const tenant = (await ask(PLATFORM, "api/v1/tenants?limit=1")).tenants[0].tenant;
const campaign = (await ask(PLATFORM, `api/v1/tenants/${tenant}/campaigns`)).campaigns.sort((a, b) => b.runs - a.runs)[0];
const SEGMENT = "rich in Lisbon or Porto"; // made by the demo

// name, server, place
const PAGES = [
    ["overview", BROKER, "#/"], ["queues", BROKER, "#/queues"], ["queue", BROKER, "#/queues/orders"],
    ["partitions", BROKER, "#/queues/orders?tab=partitions"], ["groups-of-queue", BROKER, "#/queues/orders?tab=groups"],
    ["messages", BROKER, "#/queues/payments?tab=messages"], ["options", BROKER, "#/queues/payments?tab=options"],
    ["groups", BROKER, "#/groups"], ["group", BROKER, "#/groups/analytics/orders"],
    ["message", BROKER, async () => "#/message/" + (await waiting()).id], ["search", BROKER, "#/search?q=cus"],
    ["dead-letters", BROKER, "#/dead-letters"], ["scheduled", BROKER, "#/scheduled"], ["recurring", BROKER, "#/scheduled?tab=recurring"],
    ["processors", BROKER, "#/processors"], ["owners", BROKER, "#/groups/aggregator/telemetry?tab=owners"], ["streams", BROKER, "#/streams"], ["traces", BROKER, "#/traces"], ["trace", BROKER, "#/traces/orders"],
    ["system", BROKER, "#/system"], ["audit", BROKER, "#/audit"], ["settings", BROKER, "#/settings"],
    ["keys", BROKER, "#/keys"],
    ["platform", PLATFORM, "#/"], ["tenants", PLATFORM, "#/tenants"], ["tenant", PLATFORM, "#/tenants/" + tenant], ["pools", PLATFORM, "#/pools"],
    ["segment", PLATFORM, `#/tenants/${tenant}/segments/${encodeURIComponent(SEGMENT)}`], ["campaign", PLATFORM, `#/tenants/${tenant}/campaigns/${campaign.id}`], ["platform-audit", PLATFORM, "#/audit"],
];
const LOOKS = [["", "light", 1440], ["-dark", "dark", 1440], ["-phone", "light", 390], ["-phone-dark", "dark", 390]];

mkdirSync(folder, { recursive: true });
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: ["--no-sandbox", "--disable-gpu", "--no-first-run"] });
const page = await browser.newPage();
page.setDefaultTimeout(60000);
page.on("pageerror", (e) => console.error("exception: " + e.message));
for (const [suffix, scheme, width] of LOOKS) {
    if (suffix && !all) continue;
    await page.setViewport({ width, height: 800, deviceScaleFactor: 1 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const [name, base, hash] of PAGES) {
        if (only && !name.includes(only)) continue;
        await page.goto("about:blank");
        await page.goto(base + (typeof hash === "function" ? await hash() : hash));
        await page.waitForSelector("h1, .empty");
        await page.waitForFunction(() => document.querySelector(".skeleton") === null);
        await page.waitForNetworkIdle({ idleTime: 300 }).catch(() => undefined); // live pages are never idle
        const height = await page.evaluate(() => document.documentElement.scrollHeight);
        await page.screenshot({ path: path.join(folder, `dashboard-${name}${suffix}.png`), clip: { x: 0, y: 0, width, height: Math.min(height, all ? 2200 : 1200) } });
        console.log(name + suffix);
    }
}
await browser.close();
