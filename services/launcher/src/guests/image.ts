/** The files that a guest starts from, as guest/build made them. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

const FILES = ["vmlinuz", "initrd", "system.erofs"];

/** Throws where a file is not the one that was built. */
export async function checkImage(folder: string): Promise<void> {
  const text = await readFile(join(folder, "SHA256SUMS"), "utf8");
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
