/** What systemd's own tools say of the unit. systemd itself need not run. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { notifyReady } from "@svc/cli/systemd/notify";
import { UNIT_NAME, unitText } from "@svc/cli/systemd/unit";
import { afterAll, beforeAll, expect, test } from "vitest";

let folder: string;
let unit: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-unit-"));
  unit = join(folder, UNIT_NAME);
  const options = ["--data-dir", "/var/lib/a data folder/50%"];
  writeFileSync(unit, unitText({ root: ROOT, options, writable: [options[1] ?? ""], stopSeconds: 300 }));
});

afterAll(() => rmSync(folder, { recursive: true }));

function analyze(...words: string[]): { status: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync("systemd-analyze", ["--no-pager", ...words], {
    encoding: "utf8",
  });
  return { status, said: `${stdout}${stderr}` };
}

test("systemd understands every line", () => {
  expect(analyze("verify", "--man=no", unit)).toEqual({ status: 0, said: "" });
});

/** Of 100, lower is better. Half of the rest are the capabilities and namespaces that jails are made of. */
const EXPOSURE = 70;

test("systemd's estimate of what the service could do does not grow", () => {
  const { status, said } = analyze("security", "--offline=yes", `--threshold=${EXPOSURE}`, unit);
  expect(status, said).toBe(0);
});

test("a start that systemd cannot be told of fails, with what its tool says", async () => {
  const env = { ...process.env, NOTIFY_SOCKET: join(folder, "missing") };
  await expect(notifyReady(env)).rejects.toThrow("systemd-notify failed");
});
