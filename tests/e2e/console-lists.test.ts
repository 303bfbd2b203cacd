/** What the console lists, in a browser against the whole system: files that were added, and jobs that go on or have ended. */
import { sharedSystem } from "@svc/test-kit/system/shared";
import { expect, test } from "vitest";
import { useConsole } from "./support/console.ts";

const shared = sharedSystem();
const { page, open: openAt, runs, output, status, button } = useConsole(() => [shared.url]);
const open = () => openAt(shared.url);

const adder = () => page().getByLabel("Add files");
const textFile = (name: string, text: string) => ({
  name,
  mimeType: "text/plain",
  buffer: Buffer.from(text),
});

/** The newest of the list. */
const job = () => page().getByRole("list", { name: "Jobs" }).getByRole("listitem").first();

async function startsJob(code: string): Promise<void> {
  await page().getByLabel("Language").selectOption("bash");
  await page().getByRole("textbox", { name: "Code" }).click();
  await page().keyboard.press("Control+a");
  await page().keyboard.insertText(code);
  await button("Run as job").click();
  await status().getByText("was made").waitFor();
  await page().getByText("Jobs", { exact: true }).click();
  await job().waitFor();
}

/** As the service has it, whatever the page shows. */
const newestStatus = () =>
  page().evaluate<string>(`fetch("/v1/jobs").then(async (answer) => (await answer.json()).jobs[0].status)`);

test("no file stays chosen, so that the browser tells of one that is chosen again after it was changed", async () => {
  await open();
  await adder().setInputFiles(textFile("data.txt", "old"));
  await button("Download data.txt").waitFor();
  expect(await adder().inputValue()).toBe("");
  await adder().setInputFiles(textFile("data.txt", "new"));
  await expect.poll(() => adder().inputValue()).toBe("");
  await expect
    .poll(async () => {
      await runs("print(open('data.txt').read())");
      return output().textContent();
    })
    .toBe("new\n");
});

test("a file that is taken off the list is given to no run any more", async () => {
  await open();
  await adder().setInputFiles([textFile("one.txt", "1"), textFile("two.txt", "2")]);
  await button("Download two.txt").waitFor();
  await button("Remove one.txt").click();
  await button("Download one.txt").waitFor({ state: "detached" });
  await runs("import os; print(sorted(os.listdir('.')))");
  await expect.poll(() => output().textContent()).toContain("two.txt");
  expect(await output().textContent()).not.toContain("one.txt");
});

test("Stop ends the view of a job, says so, and the job goes on until it is cancelled", async () => {
  await open();
  await startsJob("echo begun; sleep 50");
  await job().getByRole("button", { name: "Show" }).click();
  await output().getByText("begun").waitFor();
  await button("Stop").click();
  await status().getByText("the job goes on").waitFor();
  expect(await newestStatus()).toBe("running");
  await job().getByRole("button", { name: "Cancel" }).click();
  await expect.poll(newestStatus).toBe("cancelled");
});

test("Cancel of a job that has ended since the list was read leaves it with its result", async () => {
  await open();
  await startsJob("sleep 2; echo kept");
  const ends = job().getByRole("button", { name: "Cancel" });
  await ends.waitFor();
  await expect.poll(newestStatus).toBe("completed");
  await ends.click();
  await job().getByRole("button", { name: "Remove" }).waitFor();
  await job().getByRole("button", { name: "Show" }).click();
  await expect.poll(() => output().textContent()).toBe("kept\n");
});
