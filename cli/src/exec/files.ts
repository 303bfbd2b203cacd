/** Files that `exec` reads here and sends. What cannot be read is a Problem that names it. */
import { constants, openAsBlob } from "node:fs";
import { access, readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { text } from "node:stream/consumers";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { systemProblem } from "../unexpected.ts";
import { STANDARD_INPUT } from "./program.ts";

export async function readText(path: string): Promise<string> {
  if (path === STANDARD_INPUT) return text(process.stdin);
  return reading(path, () => readFile(path, "utf8"));
}

export async function openInput(argument: string): Promise<{ name: string; content: Blob }> {
  const { path, name } = await splitInput(argument);
  // Of a file that cannot be opened `openAsBlob` does not say why.
  await reading(path, () => access(path, constants.R_OK));
  return { name, content: await reading(path, () => openAsBlob(path)) };
}

/** `data/a.csv` is `a.csv` inside; `data/a.csv:in/b.csv` is `in/b.csv`. A file whose own name has a colon wins. */
async function splitInput(argument: string): Promise<{ path: string; name: string }> {
  const whole = await fileAt(argument);
  const colon = argument.lastIndexOf(":");
  if (whole || colon < 1) return { path: argument, name: basename(argument) };
  const path = argument.slice(0, colon);
  await fileAt(path);
  return { path, name: argument.slice(colon + 1) };
}

/** Whether there is one. A folder is refused. */
async function fileAt(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory())
    throw new Problem(`${path} is a folder; --in takes files`, undefined, USAGE_EXIT_CODE);
  return found !== undefined;
}

async function reading<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new Problem(`cannot read ${path}: there is no such file`);
    if (code === "EISDIR") throw new Problem(`cannot read ${path}: it is a folder`);
    const reason = systemProblem(error);
    if (reason === undefined) throw error;
    throw new Problem(`cannot read ${path}: ${reason.message}`);
  }
}
