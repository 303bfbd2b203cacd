/** The files that a guest starts from, as guest/build made them. */
import { createHash } from "node:crypto";
import { createReadStream, existsSync, linkSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

const FILES = ["vmlinuz", "initrd", "system.erofs", "sealed-memory"];
const SUMS = "SHA256SUMS";
const HELD = /^\.launcher-(\d+)$/;

export interface HeldImage {
  folder: string;
  release: () => void;
}

/**
 * Makes hard links to the files for as long as this process runs. A build replaces the files, but guests that resume from a saved guest need the
 * ones that it had. A folder on a read-only file system is used as it is.
 */
export function holdImage(folder: string): HeldImage {
  const held = join(folder, `.launcher-${process.pid}`);
  try {
    sweep(folder);
    mkdirSync(held, { mode: 0o755 });
    for (const name of [...FILES, SUMS]) linkSync(join(folder, name), join(held, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EROFS") return { folder, release: () => undefined };
    rmSync(held, { recursive: true, force: true });
    throw error;
  }
  return { folder: held, release: () => rmSync(held, { recursive: true, force: true }) };
}

/** Removes what killed launchers left behind, including one that had the process id of this one. */
function sweep(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = HELD.exec(name)?.[1];
    if (pid !== undefined && (pid === String(process.pid) || !existsSync(`/proc/${pid}`)))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** Throws when a file is not the one that was built. */
export async function checkImage(folder: string): Promise<void> {
  const text = await readFile(join(folder, SUMS), "utf8");
  const sums = new Map(
    text.split("\n").map((line) => {
      const [sum = "", name = ""] = line.split("  ");
      return [name, sum];
    }),
  );
  for (const name of FILES) {
    const hash = createHash("sha256");
    await pipeline(createReadStream(join(folder, name)), hash);
    if (hash.digest("hex") !== sums.get(name))
      throw new Error(`${name} of the guest's image is damaged: build it anew`);
  }
}
