// Scenarios of drive.mjs that act on groups, messages and the server, and that look at empty servers.
import assert from "node:assert/strict";

export const actions = ({ page, open, seen, gone, button, click, fill, api, until, allowed, axe, input, base, PAGES }) => ({
    /** Groups are searched and paged by the server; the partitions of one are searched and sorted; the group is forgotten. */
    async groups() {
        let largest = 0;
        page.on("response", async (r) => { if (r.url().includes("consumer-groups")) largest = Math.max(largest, (await r.buffer().catch(() => "")).length); });
        await open("#/groups?sort=name");
        await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 50);
        await click("Next");
        await seen("51–");
        await fill("input[aria-label='Group or queue contains']", "READER-1");
        await page.waitForFunction((n) => document.querySelectorAll("tbody tr").length === n, {}, input.matches);
        await (await page.waitForSelector("::-p-xpath(//tr[.//bdi[text()='reader-1']]//a[.//bdi[text()='reader-1']])")).click();
        await page.waitForFunction(() => document.querySelector("tbody td")?.innerText === "many-7"); // it has the most messages
        assert.equal((await page.$$("tbody tr")).length, 50);
        await seen("1–50 of 60");
        await page.waitForFunction(() => document.querySelectorAll(".tile")[3]?.innerText.includes("60"), {}); // leases
        await page.select("select[aria-label=Order]", "name");
        await page.waitForFunction(() => document.querySelector("tbody td")?.innerText === "many-0");
        await fill("input[aria-label='Name contains']", "MANY-59");
        await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
        await seen("leased");
        assert.ok(largest > 0 && largest < 60000, `${largest} bytes`);
        await click("Delete");
        assert.equal(await (await button("Delete the group", "dialog")).evaluate((b) => b.disabled), true);
        await fill("dialog input", "reader-1");
        await click("Delete the group", "dialog");
        await until("the group is forgotten", async () => (await api("GET", "api/v1/consumer-groups?queue=crowd&consumerGroup=reader-1")).length === 0);
    },

    /** A message is moved to the dead letters, delivered again, fails, and its retry is cancelled. */
    async actions() {
        let id = input.message;
        const group = async () => (await api("GET", "api/v1/messages/timeline?messageId=" + id)).messages?.[0]?.consumerGroups[0] ?? {};
        allowed.add(404); // the page may look for the old message once more while it is delivered again
        await open("#/message/" + id);
        await seen("is being processed now");
        await click("Move to dead letters");
        await fill("dialog input", "looked at by hand");
        await click("Move", "dialog");
        await until("it is a dead letter", async () => (await group()).status === "FAILED");
        await seen("looked at by hand");
        await click("Deliver again now");
        await page.waitForFunction((old) => !location.hash.includes(old), {}, id); // it has a new id
        id = await page.evaluate(() => location.hash.split("/").at(-1));
        await page.waitForFunction(() => document.querySelector("main .badge.bad") === null && document.querySelector(".words") !== null);
        console.log("fail");
        await seen("will be retried at");
        await page.waitForSelector(".axis-now");
        await click("Cancel the retry");
        await until("the retry is cancelled", async () => (await group()).status === "FAILED");
        await seen("is a dead letter");
    },

    /** Deliveries and pushes are stopped and resumed; a queue is cleared. */
    async maintenance() {
        const is = async (what) => { const d = await api("GET", "api/v1/system/maintenance" + what); return d.maintenanceMode ?? d.popMaintenanceMode; };
        await open("#/system");
        await click("Stop deliveries");
        await seen("answer empty");
        assert.equal(await is("/pop"), true);
        await click("End");
        await gone("answer empty");
        await click("Buffer pushes");
        await seen("go to the file buffer");
        assert.equal(await is(""), true);
        await click("End");
        await gone("go to the file buffer");
        assert.equal(await is(""), false);
        await open("#/queues/" + input.queue);
        await click("Clear");
        await fill("dialog input", input.queue);
        await click("Remove all messages", "dialog");
        await until("the queue is empty", async () => (await api("GET", "api/v1/status/queues/" + input.queue)).totals.total === 0);
        await open("#/scheduled?queue=" + input.later);
        await click("Now");
        await seen("Nothing waits.");
        await open(`#/scheduled?queue=${input.later}&kind=retry`);
        await seen("Nothing waits.");
    },

    /** Tabs share their answers: one whose requests all fail shows the figures that another has loaded. */
    async tabs() {
        await open("#/queues?search=shared-figures");
        await page.waitForSelector("tbody tr");
        const other = await page.browser().newPage();
        await (await other.createCDPSession()).send("Emulation.setFocusEmulationEnabled", { enabled: true });
        await other.goto(base + "#/queues?search=shared-figures");
        await other.waitForSelector("tbody tr");
        await other.setRequestInterception(true);
        other.on("request", (r) => void (r.url().includes("/api/") ? r.abort() : r.continue()));
        await (await page.createCDPSession()).send("Emulation.setFocusEmulationEnabled", { enabled: true });
        await api("POST", "api/v1/push", { items: Array.from({ length: 77 }, () => ({ queue: "shared-figures", payload: 1 })) });
        const shown = () => document.querySelector("tbody td:nth-child(3)")?.innerText === "78";
        await page.waitForFunction(shown);
        await other.waitForFunction(shown);
        await other.close();
    },

    /** Figures move within seconds, and every chart of the overview has its history. */
    async figures() {
        await open("#/");
        await seen("Needs attention");
        let pushed = 0;
        await until("the rate is that of the last seconds", async () => {
            await api("POST", "api/v1/push", { items: Array.from({ length: 50 }, () => ({ queue: "moving-figures", payload: ++pushed })) });
            return page.evaluate(() => document.querySelector(".tile-note")?.innerText === "now" && parseFloat(document.querySelector(".tile-value").innerText) > 0);
        }, 10 * page.getDefaultTimeout()); // on a busy machine the page asks every 15 s, and three answers are needed
        for (const label of ["Messages per second", "Backlog", "Time from push to delivery", "Age of the oldest pending message", "Retries waiting", "Dead letters", "Messages in the file buffers",
            "CPU in percent of a core", "Failed calls"])
            await page.waitForFunction((l) => document.querySelector(`.chart[aria-label^="${l}: "]`)?.ariaLabel.match(/\d/), {}, label);
        for (const range of ["6h", "24h", "7d"]) {
            await click(range);
            await page.waitForFunction((r) => location.hash.includes(r) && document.querySelectorAll(".chart canvas").length >= 9, {}, range);
        }
    },

    /** Traces by name, and from one to its message. */
    async traces() {
        await open("#/traces");
        await (await page.waitForSelector("::-p-xpath(//tbody//a[.//bdi[text()='audit']])")).click();
        await seen("booked");
        await (await page.waitForSelector("tbody a")).click();
        await seen("completed at the first attempt");
    },

    /** Stream queries and the changes of owners. */
    async streams() {
        await open("#/streams");
        await seen(input.stream);
        await seen("not started");
        await fill("input[aria-label='Name contains']", "none-of-these");
        await seen("No query matches.");
        await open("#/groups/aggregator/telemetry");
        await click("Processors", ".tabs");
        await seen("Owners of partitions");
        await seen("worker-1");
        await page.waitForFunction(() => document.querySelectorAll("[aria-label=Changes] tbody tr").length >= 3);
    },

    /** Dialogs have no serious or critical finding, in light and dark. */
    async dialogs() {
        for (const scheme of ["light", "dark"]) {
            await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
            for (const [hash, label] of [["#/queues", "New queue"], ["#/queues/orders", "Push a message"], ["#/queues/orders", "Delete"], ["#/groups/shipping/orders", "Seek"], ["#/scheduled?queue=later", "Move"], ["#/keys", "New key"]]) {
                await open(hash);
                await click(label);
                await page.waitForSelector("dialog[open]");
                await axe(`${scheme}: ${hash} ${label}`);
            }
        }
    },

    /** A server without any data: each page says so. */
    async empty() {
        for (const hash of PAGES.filter((p) => !/orders|telemetry|audit$/.test(p))) {
            await open(hash);
            await page.waitForSelector("h1");
            await page.waitForFunction(() => document.querySelector(".skeleton") === null);
            assert.equal(await page.$(".problem"), null, hash);
            assert.ok(hash === "#/settings" || hash === "#/system" || (await page.$("main .empty, main tbody tr")), hash);
        }
        await open("#/");
        await seen("Nothing. All groups keep up");
        await open("#/no-such-page");
        await seen("There is no such page.");
        allowed.add(404);
        await open("#/queues/none");
        await seen("not found");
        await open("#/message/00000000-0000-4000-8000-000000000000");
        await page.waitForSelector(".problem");
    },
});
