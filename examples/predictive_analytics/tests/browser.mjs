// The page in headless Chromium, for the browser test of web_app.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The name of a shop, and a title, that run a script where they are taken for markup. */
const SHOP = `<img src=x onerror="document.title='owned'">`;
const TITLE = `</title><script>document.title='owned'</script>`;

/** `tools` are functions of the browser test. */
export async function predictiveAnalytics(browser, program, data, shots, { start, stop, visit, load, say, answered }) {
  const server = await start(program, join(data, "analytics"));
  try {
    const page = await visit(browser, server.url);
    await page.getByText("Nothing is drawn yet.").waitFor();
    await say(page, "How will sales develop in the next 6 months?");
    await page.getByText("with the predicted months dashed.").waitFor();
    await answered(page);
    const chart = page.locator("svg.chart");
    assert.equal(await chart.count(), 1);
    assert.equal(await chart.locator("path.line").count(), 6);
    assert.equal(await chart.locator("path.dashed").count(), 3);
    assert.deepEqual(await page.locator(".legend li").allTextContents(), ["Harbour", "Market", "Station"].flatMap((shop) => [shop, `${shop}, predicted`]));
    // Six series, and the line from the last known month to the first predicted one.
    assert.equal(await page.locator(".numbers tr").count(), 3 * (36 + 1 + 6));
    // An SVGRect has no properties of its own: it would arrive here empty.
    const boxes = await chart.locator("path.line").evaluateAll(
      (paths) => paths.map((path) => path.getBBox()).map(({ x, y, width, height }) => ({ x, y, width, height })),
    );
    for (const box of boxes) {
      assert.ok(box.x >= 0 && box.x + box.width <= 640 && box.y >= 0 && box.y + box.height <= 320, JSON.stringify(box));
    }
    await page.getByText(/^Computed with /).waitFor();
    // The analyst's work stays in the card of its task.
    assert.match(await page.locator(".live").last().textContent(), /> return_result/);
    await page.screenshot({ path: join(shots, "predictive_analytics.png") });

    await load(page, server.url);
    assert.equal(await chart.locator("path.line").count(), 6, "after a reload");
    await page.context().close();
  } finally {
    await stop(server);
  }
  await hostile(browser, program, data, { start, stop, visit, say, answered });
}

/** Markup in names of the data and in a title is text. */
async function hostile(browser, program, data, { start, stop, visit, say, answered }) {
  const csv = join(data, "hostile.csv");
  const field = `"${SHOP.replaceAll('"', '""')}"`;
  await writeFile(csv, `month,shop,revenue\n2024-01,${field},7\n2025-01,${field},-3\n`);
  const server = await start(program, join(data, "hostile"), ["--csv", csv]);
  try {
    const page = await visit(browser, server.url, { viewport: { width: 390, height: 800 } });
    await say(page, `bars ${TITLE}`);
    await page.getByText("Those are the years.").waitFor();
    await answered(page);
    await page.getByRole("tab", { name: "Charts" }).click();
    assert.equal(await page.locator("figcaption").textContent(), TITLE);
    assert.equal(await page.locator("svg.chart > title").textContent(), TITLE);
    assert.equal(await page.locator(".legend li").textContent(), SHOP);
    assert.equal(await page.locator("svg.chart rect").count(), 2);
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.equal(await page.title(), "predictive_analytics");
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
    await page.context().close();
  } finally {
    await stop(server);
  }
}
