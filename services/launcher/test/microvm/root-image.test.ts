/** The root image of a guest, changed behind the launcher's back: a guest that reads what was changed ends. */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  linkSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { loadConfig } from "@svc/service-kit/config/load";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { ACCELERATOR, buildGuest, guestProcesses, IMAGE, UID_BASE } from "@svc/test-kit/system/guests";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { guestEnvironment } from "../../src/guests/environment.ts";
import { Guest } from "../../src/guests/guest.ts";
import { qemu } from "../../src/monitor/qemu.ts";

const BOOT_MS = 200_000;
const BLOCK_BYTES = 4096;
/** Of a block that the kernel reads first; erofs begins 1,024 bytes after it and never looks there. */
const UNUSED = 0;
/** Of the hashes of hashes, which follow the blocks (`verity` is a table of the device mapper). */
const topHashes = () => Number(readFileSync(join(IMAGE, "verity"), "utf8").split(" ")[8]) * BLOCK_BYTES;

const config = loadConfig("launcher", {
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newSigner().pem,
  SANDBOX_FORWARD_TARGET: "gateway.internal:3190",
});

let image: string;
beforeAll(() => {
  buildGuest();
  // Beside the image: links do not lead to another file system.
  image = mkdtempSync(`${IMAGE}.changed-`);
  chmodSync(image, 0o755);
  for (const name of ["vmlinuz", "initrd"]) linkSync(join(IMAGE, name), join(image, name));
});
beforeEach(() => copyFileSync(join(IMAGE, "system.erofs"), join(image, "system.erofs")));
afterAll(() => rmSync(image, { recursive: true, force: true }));

function change(position: number): void {
  const file = openSync(join(image, "system.erofs"), "r+");
  writeSync(file, "changed", position);
  closeSync(file);
}

/** Boots one, and answers whether it took runs and what its kernel said. */
async function boot(): Promise<{ ready: boolean; lines: string }> {
  const lines: string[] = [];
  const guest = new Guest({
    monitor: qemu(ACCELERATOR),
    machine: {
      image,
      verified: true,
      ramMib: 512,
      vcpus: 1,
      logLevel: 5,
      user: { uid: UID_BASE, gid: UID_BASE },
      onConsole: (line) => lines.push(line),
    },
    env: guestEnvironment(config),
    connectGateway: () => connect({ port: 1, host: "127.0.0.1" }),
    bootMs: BOOT_MS,
  });
  const ready = await guest.ready().then(
    () => true,
    () => false,
  );
  if (ready) await guest.end();
  await guest.ended;
  await expect.poll(() => guestProcesses().filter(({ uid }) => uid === UID_BASE)).toEqual([]);
  return { ready, lines: lines.join("\n") };
}

test("as it was built, a guest boots from it", async () => {
  expect(await boot()).toMatchObject({ ready: true });
});

test.each([
  ["in a block that holds nothing there", () => UNUSED],
  ["in its hashes", topHashes],
])("changed %s, it ends the guest that reads it", async (_, position) => {
  change(position());
  const { ready, lines } = await boot();
  expect(ready).toBe(false);
  expect(lines).toMatch(/verity.* corrupted/);
});
