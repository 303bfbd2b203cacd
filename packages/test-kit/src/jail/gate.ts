/**
 * The 32-bit gate of Linux on x86-64 (int 0x80), which jails forbid. A kernel may have none: without IA32 emulation, or in a confidential
 * virtual machine, where every process that tries it ends by SIGSEGV before any filter is asked.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { IN_GUESTS } from "../system/guests.ts";

/** Getpid through the gate, then exit by it. */
export const GATE_PROGRAM = elf(Buffer.from("b814000000cd80b801000000cd80", "hex"));

/** By what a process in a jail ends that enters by the gate. */
export const GATE_SIGNAL = hasGate()
  ? ({ name: "SIGSYS", number: 31 } as const)
  : ({ name: "SIGSEGV", number: 11 } as const);

/** Of the kernel under the jails. That of microVMs has it. */
function hasGate(): boolean {
  if (IN_GUESTS) return true;
  const folder = mkdtempSync(join(tmpdir(), "svc-test-gate-"));
  try {
    const program = join(folder, "gate");
    writeFileSync(program, GATE_PROGRAM, { mode: 0o700 });
    return spawnSync(program).signal !== "SIGSEGV";
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A program of this machine code alone. */
function elf(code: Buffer): Buffer {
  const file = Buffer.alloc(120 + code.length);
  file.write("\x7fELF\x02\x01\x01", 0, "latin1");
  file.writeUInt16LE(2, 16); // executable
  file.writeUInt16LE(62, 18); // x86-64
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(0x400078n, 24); // entry
  file.writeBigUInt64LE(64n, 32); // program headers
  file.writeUInt16LE(64, 52);
  file.writeUInt16LE(56, 54);
  file.writeUInt16LE(1, 56);
  file.writeUInt32LE(1, 64); // load
  file.writeUInt32LE(5, 68); // read, execute
  file.writeBigUInt64LE(0x400000n, 80);
  file.writeBigUInt64LE(0x400000n, 88);
  file.writeBigUInt64LE(BigInt(file.length), 96);
  file.writeBigUInt64LE(BigInt(file.length), 104);
  file.writeBigUInt64LE(4096n, 112);
  code.copy(file, 120);
  return file;
}
