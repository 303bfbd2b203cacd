/** Reads the files that `exec` sends. A file that cannot be read is a Problem that names it. */
import { constants, createReadStream, openAsBlob } from "node:fs";
import { access, stat } from "node:fs/promises";
import { basename } from "node:path";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { systemProblem } from "../unexpected.ts";
import { STANDARD_INPUT } from "./program.ts";

/** More than a request may hold (SVC_HTTP_JSON_LIMIT), unless an operator raised that limit this far. */
const MAX_TEXT_BYTES = 64 * 2 ** 20;

/** `-` is standard input. Endless input, such as a device, is refused before it fills the memory. */
export async function readText(path: string): Promise<string> {
  return reading(path, async () => {
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of path === STANDARD_INPUT ? process.stdin : createReadStream(path)) {
      pieces.push(piece as Buffer);
      size += pieces.at(-1)?.length ?? 0;
      if (size > MAX_TEXT_BYTES) throw tooLong(path);
    }
    return Buffer.concat(pieces).toString("utf8");
  });
}

function tooLong(path: string): Problem {
  const what = path === STANDARD_INPUT ? "standard input" : path;
  return new Problem(
    `${what} holds more than ${MAX_TEXT_BYTES / 2 ** 20} MiB`,
    "Give large data as a file: --in FILE.",
  );
}

export async function openInput(argument: string): Promise<{ name: string; content: Blob }> {
  const { path, name } = await splitInput(argument);
  // `openAsBlob` does not say why it cannot open a file.
  await reading(path, () => access(path, constants.R_OK));
  return { name, content: await reading(path, () => openAsBlob(path)) };
}

/**
 * `data/a.csv` becomes `a.csv` in the jail; `data/a.csv:in/b.csv` becomes `in/b.csv`. A file whose own name contains the
 * colon has precedence.
 */
async function splitInput(argument: string): Promise<{ path: string; name: string }> {
  const whole = await fileAt(argument);
  const colon = argument.lastIndexOf(":");
  if (whole || colon < 1) return { path: argument, name: basename(argument) };
  const [path, name] = [argument.slice(0, colon), argument.slice(colon + 1)];
  await fileAt(path);
  if (name === "")
    throw new Problem(
      `--in ${argument} ends without a name`,
      "Give it as FILE, or as FILE:NAME.",
      USAGE_EXIT_CODE,
    );
  return { path, name };
}

/** Returns whether there is a file. Folders, pipes and devices are refused. */
async function fileAt(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory())
    throw new Problem(`${path} is a folder; --in takes files`, undefined, USAGE_EXIT_CODE);
  if (found !== undefined && !found.isFile())
    throw new Problem(
      `${path} is a pipe or a device; --in takes files`,
      "Write it to a file first, or give it to the program as its input: --stdin FILE.",
      USAGE_EXIT_CODE,
    );
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
    if (reason === undefined || error instanceof Problem) throw error;
    throw new Problem(`cannot read ${path}: ${reason.message}`);
  }
}
