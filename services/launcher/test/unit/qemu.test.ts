import { expect, test } from "vitest";
import { ConsoleLines } from "../../src/monitor/console.ts";
import { newFile, qemuCommand } from "../../src/monitor/qemu.ts";

const spec = {
  image: "/image",
  verified: true,
  ramMib: 1024,
  vcpus: 2,
  logLevel: 3,
  user: { uid: 4001, gid: 4002 },
  onConsole: () => undefined,
};
const after = (command: readonly string[], word: string) =>
  command.flatMap((given, at) => (given === word ? [command[at + 1]] : []));

test("the machine has the memory and processors that were asked for, a read-only disk and no network", () => {
  const command = qemuCommand("kvm", spec);
  expect(after(command, "-m")).toEqual(["1024"]);
  expect(after(command, "-smp")).toEqual(["2"]);
  expect(after(command, "-nic")).toEqual(["none"]);
  expect(after(command, "-drive")).toEqual([
    "id=system,file=/guest/system.erofs,format=raw,if=none,readonly=on,file.locking=off",
  ]);
  expect(command.filter((word) => /netdev|virtio-net|virtfs|9p|fsdev/.test(word))).toEqual([]);
});

test("a machine that is saved writes to its file, and one that goes on from it keeps what it writes to itself", () => {
  const memory = (more: object) => after(qemuCommand("kvm", { ...spec, ...more }), "-object");
  expect(memory({})).toEqual([]);
  expect(memory({ saving: { memory: 9, folder: "/saved" } })[0]).toMatch(/,share=on$/);
  expect(memory({ from: { memory: 9, devices: 10 } })[0]).toMatch(/,share=off$/);
});

test("the first program is told that blocks are not to be checked", () => {
  const words = (more: object) => after(qemuCommand("kvm", { ...spec, ...more }), "-append")[0]?.split(" ");
  expect(words({ verified: false })).toContain("unverified=1");
  expect(words({})).not.toContain("unverified=1");
});

test("its process has a user without rights, a root of its own and a filter", () => {
  const command = qemuCommand("tcg", spec);
  expect(after(command, "sh")).toEqual(["/image"]);
  for (const word of [
    "--reuid=4001",
    "--regid=4002",
    "--clear-groups",
    "--no-new-privs",
    "--bounding-set=-all",
  ])
    expect(command).toContain(word);
  expect(after(command, "-sandbox")[0]).toMatch(/^on,.*spawn=deny/);
});

test("lines of the console are printable, and bounded in length and number", () => {
  const lines: string[] = [];
  const console = new ConsoleLines((line) => lines.push(line));
  console.push(Buffer.from("one\r\ntwo \x1b[31mred\n"));
  console.push(Buffer.from("cut in "));
  console.push(Buffer.from("two\n\n"));
  expect(lines).toEqual(["one", "two [31mred", "cut in two"]);
  console.push(Buffer.from("x".repeat(100_000)));
  console.push(Buffer.from("\n"));
  expect(lines.at(-1)).toHaveLength(500);
  for (let at = 0; at < 1000; at++) console.push(Buffer.from("more\n"));
  expect(lines).toHaveLength(400);
});

test("a file that cannot be written fails who waits for it, and nobody before", async () => {
  const { file, written } = newFile("/proc/none");
  await new Promise<void>((resolve) => file.once("close", () => resolve()));
  await expect(written).rejects.toThrow("/proc/none");
});
