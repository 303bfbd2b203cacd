/**
 * docs/troubleshooting.md, "Disk full": small file systems are filled. Each request is answered, also one that was accepted
 * before; deadlines are those of any copy, and longer than a call of these tests waits. All goes on when there is room again.
 */

import { join } from "node:path";
import { isAlive, killProcess } from "@svc/test-kit/jail/host";
import { type Answer, Api, refTo } from "@svc/test-kit/system/api";
import { RUNNER } from "@svc/test-kit/system/guests";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { readOrEmpty } from "@svc/test-kit/system/read-file";
import { SmallDisk } from "@svc/test-kit/system/small-disk";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterEach, expect, test } from "vitest";
import { expectToHeal } from "../support/faults.ts";

const NOTICED_MS = 90_000;
/** As long as a request may ask for: nothing that is accepted ends by a deadline here. */
const LONG = { run_timeout: 300_000 };

let disk: SmallDisk;
let system: System | undefined;

afterEach(async () => {
  const left = await system?.stop();
  system = undefined;
  disk.remove();
  expect(left).toEqual([]);
});

const refusal = ({ status, refusal: { error } }: Answer) => [status, error];
const isHealthy = ({ instance }: System) =>
  fetch(`http://127.0.0.1:${instance.ports.runner}/health`).then(
    ({ ok }) => ok,
    () => false,
  );
const readiness = async (api: Api) => (await api.send("GET", "/ready")).status;

test("of the data folder: requests are refused, runs that had begun, too, and nothing that was answered is lost", async () => {
  disk = new SmallDisk("size=192m");
  system = await startSystem({ env: { ...OPEN_LIMITS, SVC_DATA_DIR: disk.folder } });
  const api = new Api(system.url);
  const kept = await api.stage("kept.txt", "kept");
  const marker = newMarker();
  const sleeping = ["py", "bash"].map((lang) => {
    const code = lang === "py" ? "import time\ntime.sleep(300)" : "sleep 300; :";
    return api.tryExec({ lang, code, args: [marker], ...LONG });
  });
  await until(() => processesWith(marker).length >= 2, NOTICED_MS);
  const free = disk.fill();
  let answer: Answer | undefined;
  const isRefused = async () => {
    answer = await api.tryExec({ lang: "bash", code: "echo hello", ...LONG });
    return answer.status === 503 && answer.refusal.error === "store_unavailable";
  };
  await until(isRefused, NOTICED_MS, () => answer?.text);
  for (const held of await Promise.all(sleeping)) expect(refusal(held)).toEqual([503, "store_unavailable"]);
  await until(
    () => processesWith(marker).length === 0,
    NOTICED_MS,
    () => processesWith(marker),
  );
  await expect.poll(() => readiness(api)).toBe(503);
  const lost = system.pid(RUNNER);
  killProcess(lost);
  await until(() => !isAlive(lost), NOTICED_MS);
  await until(() => isHealthy(system as System), NOTICED_MS);
  free();
  await expectToHeal(system);
  expect((await api.bytes(kept)).toString()).toBe("kept");
  await expect.poll(() => system?.pid(RUNNER)).not.toBe(lost);
  const noted = join(system.instance.runDir, `${RUNNER}.pid`);
  await expect.poll(() => readOrEmpty(noted), { timeout: NOTICED_MS }).toBe(`${system.pid(RUNNER)}\n`);
  await expect.poll(() => readiness(api)).toBe(200);
});

test("of STORAGE_DIR: uploads are refused, outputs are omitted and told, and what is stored can be read", async () => {
  disk = new SmallDisk("size=32m");
  system = await startSystem({ env: { ...OPEN_LIMITS, STORAGE_DIR: join(disk.folder, "objects") } });
  const api = new Api(system.url);
  const [kept] = await api.upload({ "kept.txt": "kept" });
  if (kept === undefined) throw new Error("nothing was stored");
  const free = disk.fill();
  const upload = () => api.form("/upload", [{ name: "a.bin", content: Buffer.alloc(100_000) }]);
  expect(refusal(await upload())).toEqual([503, "storage_unavailable"]);
  const code = "cat kept.txt; for i in $(seq 40); do echo $i > f$i; done; head -c 3000000 /dev/zero > large";
  const run = { lang: "bash", code, files: [refTo(kept)], ...LONG };
  const lost = await api.exec(run);
  expect(lost).toMatchObject({
    stdout: "kept",
    code: 0,
    artifact_delivery: { status: "failed", attempted: 41 },
  });
  expect(lost.stderr).toContain("[sandbox] Output file omitted: f1 (upload_failed)");
  await expect.poll(() => readiness(api)).toBe(503);
  free();
  await expectToHeal(system);
  const whole = await api.exec(run);
  expect(whole).not.toHaveProperty("artifact_delivery");
  expect(whole.files.filter(({ inherited }) => !inherited)).toHaveLength(41);
});

test("of files in the data folder: programs run, and one whose tools cannot be laid out is refused", async () => {
  disk = new SmallDisk("size=192m,nr_inodes=2000");
  system = await startSystem({ env: { ...OPEN_LIMITS, SVC_DATA_DIR: disk.folder } });
  const api = new Api(system.url);
  const free = disk.fillInodes();
  const tools = [{ name: "add", description: "Adds.", parameters: { type: "object", properties: {} } }];
  const withTools = () => api.post("/exec/programmatic", { code: "print(await add())", tools });
  const refused = await withTools();
  expect(refusal(refused)).toEqual([503, "sandbox_setup_failed"]);
  expect((await api.exec({ lang: "bash", code: "echo hello" })).stdout).toBe("hello\n");
  free();
  await expectToHeal(system);
  expect((await withTools()).json()).toMatchObject({ status: "tool_call_required" });
});
