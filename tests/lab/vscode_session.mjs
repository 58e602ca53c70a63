// A user's session with the extension in code-server, clicked by playwright-core in Chromium. Prints what was seen as JSON.
// Arguments: the folder of playwright-core, Chromium's program, the address of the editor, where pictures go.

import { createRequire } from "node:module";
import { join } from "node:path";

const [playwrightFolder, chromiumProgram, address, pictures] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(playwrightFolder);
const HOSTILE = "Deploys are on Tuesday $(trash) [x](command:workbench.action.quit) <img src=x onerror=alert(1)> **b**";

const browser = await chromium.launch({
  executablePath: chromiumProgram,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
const seen = { dialogs: [] };
page.on("dialog", async (dialog) => {
  seen.dialogs.push(dialog.message());
  await dialog.dismiss();
});

const bar = page.locator('.statusbar-item[id*="memorySidecar"]');
const rows = page.locator(".pane-body .monaco-list-row");
const memoryRow = rows.filter({ hasText: "Deploys are" });
const input = page.locator(".quick-input-widget:visible input:visible");
const question = page.locator(".quick-input-widget:visible");

async function picture(name) {
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

async function run(command) {
  await page.keyboard.press("F1");
  await input.waitFor();
  await input.fill(`>${command}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: command }).first().click();
}

async function answer(title, text) {
  await question.filter({ hasText: title }).waitFor();
  await input.fill(text);
  await page.keyboard.press("Enter");
}

async function notice(text) {
  await page.locator(".notification-toast", { hasText: text }).first().waitFor();
}

async function press(text, button) {
  await page.locator(".notification-toast", { hasText: text }).locator(".monaco-button", { hasText: button }).click();
}

try {
  await page.goto(address);
  await bar.filter({ hasText: /^\s*0$/ }).waitFor({ timeout: 90_000 });
  await page.locator(".explorer-folders-view").getByText("app.py").dblclick();
  await page.locator(".monaco-editor .view-lines").first().click();
  await page.keyboard.press("Control+a");
  await run("Memory: Remember Selection");
  await answer("Remember selection", HOSTILE);
  await answer("What kind of thing is it?", "gotcha");
  await notice("Remembered in");
  await bar.filter({ hasText: /^\s*1$/ }).waitFor();
  const lens = page.locator(".codelens-decoration a", { hasText: /memor/ });
  await lens.first().waitFor();
  seen.lens = await lens.first().innerText();
  await page.locator('.action-item a[aria-label^="Memory"]').first().click();
  await memoryRow.first().waitFor();
  seen.row = await memoryRow.first().innerText();
  await memoryRow.first().hover();
  await page.locator(".monaco-hover:visible, .workbench-hover:visible").first().waitFor();
  seen.hover = await page.locator(".monaco-hover:visible, .workbench-hover:visible").first().innerText();
  await picture("view");

  await run("Memory: Recall");
  await answer("Recall", "when are deploys?");
  await question.filter({ hasText: "1 found" }).waitFor();
  seen.choice = await page.locator(".quick-input-list .monaco-list-row").first().innerText();
  await picture("recall");
  await page.keyboard.press("Enter");
  await page.locator('.tab[aria-label*="mem_"]').first().waitFor();
  await page.locator(".view-line", { hasText: "importance" }).first().waitFor();
  await picture("memory");

  await memoryRow.first().click({ button: "right" });
  // The editor takes no click on a menu that has just opened; a key it takes at once.
  await page.locator(".action-label", { hasText: "Challenge" }).first().hover();
  await page.keyboard.press("Enter");
  await answer("Challenge", "It is Friday now.");
  await notice("Noted");
  await memoryRow.filter({ hasText: "disputed" }).first().waitFor();

  await memoryRow.first().hover();
  await memoryRow.first().locator('a[aria-label="Forget"]').click();
  await notice("Forgot 1 memory");
  await bar.filter({ hasText: /^\s*0$/ }).waitFor();
  await memoryRow.first().waitFor({ state: "detached" });
  await press("Forgot 1 memory", "Undo");
  await notice("Restored 1 memory");
  await memoryRow.first().waitFor();

  await page.locator(".tab", { hasText: "app.py" }).click();
  await lens.first().click();
  await page.locator(".tab.active:not(:has-text('app.py'))").waitFor();
  seen.lensTab = await page.locator(".tab.active").innerText();
  await picture("lens");
  await run("Memory: Insights");
  await page.locator(".view-line", { hasText: "How often memories helped" }).first().waitFor();
  await picture("insights");
  await bar.click();
  await question.filter({ hasText: "Restart language server" }).waitFor();
  seen.menu = await page.locator(".quick-input-list .monaco-list-row").allInnerTexts();
  seen.images = await page.locator('img[src="x"]').count();
} catch (error) {
  await picture("failed");
  throw error;
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
